// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"sync"
	"time"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/launch"
	"gompi/internal/wire"
	"gompi/launcher/rm"
)

// steward carries out what a manager of resources decides about the one job of this
// gompirun: a change of its main set, as gompictl resize asks for it.
type steward struct {
	flag    string // which has made the manager, for messages
	manager rm.ResourceManager
	// watch, if not nil, is called on a goroutine of its own, and tells how many slots
	// there are whenever that changes, until done is closed.
	watch func(slots func(int), done <-chan struct{})
	col   *rm.COL // what the manager is told of the job; nil: nothing

	close func() // when the job is over; nil: nothing

	changed chan struct{}
	over    chan struct{} // closed when run has returned

	mu       sync.Mutex
	size     int  // of the main set; 0: there is none yet
	told     int  // what the manager believes
	slots    int  // -1: nobody has said so since the manager was told
	counted  bool // the manager was told of slots
	underWay bool
	answer   bool // a change is over, and the manager was not told
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
	Resize(m *control.Resize, part func(control.Message) bool) error
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
	if slots > 0 {
		s.slots = slots
	}
	o.heard = func() { s.note(func() {}) }
	s.close = o.close
	go o.serve()
	return s, nil
}

// main notes who is in the main set. It does not block.
func (s *steward) main(procs []wire.ProcID) {
	s.note(func() { s.size = len(procs) })
}

func (s *steward) note(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
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
		watching.Go(func() { s.watch(func(n int) { s.note(func() { s.slots = n }) }, p.Done()) })
	}
	for {
		now := time.Since(began)
		for _, d := range s.manager.Step(now, s.news()...) {
			s.mu.Lock()
			s.underWay = true
			s.mu.Unlock()
			go s.carry(p, d)
		}
		var clock <-chan time.Time
		if at, ok := s.manager.Next(); ok {
			clock = time.After(at - now)
		}
		select {
		case <-s.changed:
		case <-clock:
		case <-p.Done():
			return
		}
	}
}

// wait waits until nothing of the steward is left, once the job is over.
func (s *steward) wait() {
	if s != nil {
		<-s.over
	}
}

// news is what the manager has not heard.
func (s *steward) news() (list []rm.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots >= 0 {
		list = append(list, rm.Slots{Total: s.slots})
		s.slots, s.counted = -1, true
	}
	switch {
	case s.watch != nil && !s.counted: // it would take the job for one that has no slots
	case s.size == 0 || s.underWay: // the answer to its decision comes when that is over
	case s.told == 0:
		list = append(list, rm.Arrived{Job: rm.Job{ID: theJob, COL: s.col, Size: s.size, Follows: true}})
		s.told = s.size
	case s.answer || s.told != s.size:
		list = append(list, rm.Sized{Job: theJob, Size: s.size})
		s.told, s.answer = s.size, false
	}
	return list
}

// carry carries a decision out, and says what came of it.
func (s *steward) carry(p plane, d rm.Decision) {
	var last control.OpReport
	var err error
	for asked := 0; ; asked++ {
		err = p.Resize(&control.Resize{To: d.Size}, func(m control.Message) bool {
			if r, ok := m.(*control.OpReport); ok {
				last = *r
			}
			return true
		})
		pause := time.Duration(0)
		if err == nil && last.Op.Why == control.WhyNoWatch { // who has not come so far will follow later
			pause = followEvery
		}
		if asked == sayUnfollowed {
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
	if happened := err == nil && (state == change.Done || state == change.Committed); !happened && last.Op.Why != control.WhyEnding {
		launch.Say("%s: %d processes do not become %d: %s", s.flag, d.From, d.Size, text)
	}
	s.note(func() {
		if state == change.Done && s.size == d.From && last.After > 0 {
			s.size = last.After // the word of the new main set is on its way
		}
		s.underWay, s.answer = false, true
	})
}
