// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"sync"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
	"gompi/internal/control/server"
	"gompi/internal/launch"
	"gompi/launcher/rm"
)

// steward carries out what a manager of resources decides about the one job of this
// gompirun, and tells it what happens there.
type steward struct {
	flag    string // which has made the manager, for messages
	manager rm.ResourceManager
	// leases: the manager also grants what the program asks for: the job has no more
	// slots than it says. Else it decides about the main set, and is asked for nothing.
	leases bool
	// waits: it is told that the job follows changes when members watch the main set,
	// and leaves it alone before. Else it is tried, and said if that lasts.
	waits bool
	// watch, if not nil, is called on a goroutine of its own, and tells how many slots
	// each host has whenever that changes, until done is closed.
	watch func(slots func(hosts []int), done <-chan struct{})
	bound func(*rm.COL) error // the command line bounds what a program says of itself; nil: it does not

	close func() // when the job is over; nil: nothing

	changed chan struct{}
	over    chan struct{} // closed when run has returned

	mu       sync.Mutex
	size     int // of the main set, if it does not lease; 0: there is none yet
	slots    int // -1: nobody has said so since the manager was told
	col      *rm.COL
	counted  bool // it was told of slots
	newCOL   bool // the manager has not heard of it
	badCOL   bool // that it is none was said
	told     int  // what the manager believes that the job has; 0: it knows of none
	wish     int  // what it was told that the job asks for; 0: nothing
	least    int
	follows  bool // what it was told
	underWay bool
	answer   bool          // a change is over, and the manager was not told
	still    time.Duration // no move before
}

// theJob is what the manager calls it.
const theJob rm.JobID = 1

// How often it is asked for a change of a set that nobody follows yet, and when that is
// said.
const (
	followEvery   = 100 * time.Millisecond
	sayUnfollowed = 50
)

// plane is the half of the control plane that it asks.
type plane interface {
	Resize(m *protocol.Resize, part func(protocol.Message) bool) error
	Lease(slots int) head.Use
	LeaseMain(slots int, part func(protocol.Message) bool) error
	HostSlots(slots []int)
	Crowded() bool
	Done() <-chan struct{}
}

func newSteward(flag string, m rm.ResourceManager) *steward {
	return &steward{flag: flag, manager: m, changed: make(chan struct{}, 1), over: make(chan struct{}), slots: -1}
}

// steered is a steward whose manager is a program at the other end of a socket.
func steered(path string, job wire.JobID, slots int) (*steward, error) {
	o, err := newOffice(path)
	if err != nil {
		return nil, fmt.Errorf("--manager: %w", err)
	}
	o.x = rm.NewExternal(fmt.Sprintf("%016x", uint64(job)), o.secret)
	s := newSteward("--manager", o)
	s.leases = true
	if slots > 0 {
		s.slots = slots
	}
	o.heard = s.bell
	s.close = o.close
	go o.serve()
	return s, nil
}

// serves gives it its part of what the head of the job tells: of a job that begins with
// so many processes.
func (s *steward) serves(cfg *server.Config, begins int) {
	if s.leases {
		cfg.Lease, cfg.Said = begins, s.says
		cfg.Used = func(head.Use) { s.bell() }
		return
	}
	main := cfg.Main
	cfg.Main = func(procs []wire.ProcID) {
		s.note(func() { s.size = len(procs) })
		main(procs)
	}
}

// says takes what a process says of the scaling of its program.
func (s *steward) says(text []byte) {
	c, err := rm.ParseCOL(text)
	if err == nil && s.bound != nil {
		err = s.bound(c)
	}
	s.note(func() {
		if err == nil {
			s.col, s.newCOL = c, true
		} else if !s.badCOL {
			s.badCOL = true
			launch.Say("%s: what a process says of its scaling is not used: %v", s.flag, err)
		}
	})
}

func (s *steward) note(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	s.bell()
}

// bell has it look at what has happened. It does not block.
func (s *steward) bell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run lets the manager decide until the job is over.
func (s *steward) run(p plane) {
	defer close(s.over)
	began := time.Now()
	if s.close != nil {
		defer s.close()
	}
	if s.watch != nil {
		var watching sync.WaitGroup
		defer watching.Wait() // it may have started a program
		watching.Go(func() {
			s.watch(func(hosts []int) {
				p.HostSlots(hosts)
				s.note(func() { s.slots, s.still = total(hosts), 0 })
			}, p.Done())
		})
	}
	for {
		now := time.Since(began)
		for _, d := range s.manager.Step(now, s.news(p)...) {
			s.mu.Lock()
			s.underWay = true
			asked := s.wish > 0 && d.Size > s.told
			s.mu.Unlock()
			go s.carry(p, d, asked)
		}
		rests := s.moves(p, now)
		var clock <-chan time.Time
		if at, ok := s.manager.Next(); ok {
			clock = time.After(at - now)
		}
		if rests > 0 {
			clock = time.After(rests)
		}
		select {
		case <-s.changed:
		case <-clock:
		case <-p.Done():
			return
		}
	}
}

// moveEvery is how long a move that has not happened rests.
const moveEvery = 10 * time.Second

// moves brings processes away from hosts that have more than the list says, if they are
// as many as they are to be: no manager knows of hosts. It returns how long that rests.
func (s *steward) moves(p plane, now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.watch == nil || !s.counted || s.underWay || s.told == 0 || !p.Crowded():
		return 0
	case now < s.still:
		return s.still - now
	}
	s.underWay, s.still = true, now+moveEvery
	go s.carry(p, rm.Decision{Job: theJob, Size: s.told, From: s.told}, false)
	return 0
}

// wait waits until nothing of the steward is left, once the job is over.
func (s *steward) wait() {
	if s != nil {
		<-s.over
	}
}

// news is what the manager has not heard.
func (s *steward) news(p plane) (list []rm.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots >= 0 {
		list = append(list, rm.Slots{Total: s.slots})
		s.slots, s.counted = -1, true
	}
	use := head.Use{Has: s.size, Follows: true}
	if s.leases && !s.underWay {
		use = p.Lease(0) // what is not used is given back
	}
	follows := !s.waits || use.Follows
	// A driver that has not looked at its list yet would take the job for one without slots.
	silent := use.Has == 0 || s.underWay || s.watch != nil && !s.counted
	switch {
	case silent: // the answer to its decision comes when that is over
	case s.told == 0:
		list = append(list, rm.Arrived{Job: rm.Job{ID: theJob, COL: s.col, Size: use.Has, Follows: follows}})
		s.newCOL, s.follows = false, follows
	case s.answer || s.told != use.Has:
		list = append(list, rm.Sized{Job: theJob, Size: use.Has})
	}
	if s.newCOL && s.told != 0 {
		list = append(list, rm.Told{Job: theJob, COL: s.col})
		s.newCOL = false
	}
	if silent {
		return list
	}
	if s.told != use.Has {
		s.wish, s.least = 0, 0 // with that it is over for the manager
	}
	s.told, s.answer = use.Has, false
	if follows != s.follows {
		list = append(list, rm.Followed{Job: theJob, Follows: follows})
		s.follows = follows
	}
	if use.Wants != s.wish || use.Least != s.least {
		ev := rm.Wished{Job: theJob, Size: use.Wants, Min: use.Least}
		if use.Wants == 0 {
			ev.Size = use.Has
		}
		if ev.Min == ev.Size {
			ev.Min = 0
		}
		list = append(list, ev)
		s.wish, s.least = use.Wants, use.Least
	}
	return list
}

// carry carries a decision out, and says what came of it. asked: the job has asked for
// more.
func (s *steward) carry(p plane, d rm.Decision, asked bool) {
	if s.leases && asked {
		p.Lease(d.Size)
		s.note(func() { s.underWay, s.answer = false, true })
		return
	}
	var last protocol.OpReport
	var err error
	part := func(m protocol.Message) bool {
		if r, ok := m.(*protocol.OpReport); ok {
			last = *r
		}
		return true
	}
	for tries := 0; ; tries++ {
		if s.leases {
			err = p.LeaseMain(d.Size, part)
		} else {
			err = p.Resize(&protocol.Resize{To: d.Size}, part)
		}
		pause := time.Duration(0)
		if err == nil && last.Op.Why == protocol.WhyNoWatch && (tries < sayUnfollowed || !s.waits) {
			pause = followEvery // who has not come so far will follow later
		}
		if tries == sayUnfollowed && !s.waits {
			launch.Say("%s: %d processes do not become %d yet: no process calls sessions.Watch", s.flag, d.From, d.Size)
		}
		select {
		case <-p.Done():
			return
		case <-time.After(pause):
		}
		if pause == 0 {
			break
		}
	}
	text := last.Op.Text
	if err != nil {
		text = err.Error()
	}
	state := last.Op.State
	if happened := err == nil && (state == change.Done || state == change.Committed); !happened && last.Op.Why != protocol.WhyEnding {
		launch.Say("%s: %d processes do not become %d: %s", s.flag, d.From, d.Size, text)
	}
	s.note(func() {
		if state == change.Done && s.size == d.From && last.After > 0 {
			s.size = last.After // the word of the new main set is on its way
		}
		s.underWay, s.answer = false, true
	})
}
