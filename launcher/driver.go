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

// driver connects a resource manager with the one job of this gompirun: it reports events
// of the job to the manager, and carries out the manager's decisions. Fields above mu are
// set before run.
type driver struct {
	flag    string // the flag that made the manager, for messages
	manager rm.ResourceManager
	// leased: the manager also grants the sizes that the program asks for, so that the
	// job never has more slots than it says. Otherwise the manager decides about the main
	// set only, and the job's requests do not go to it.
	leased bool
	// waits: the job counts as malleable when members watch the main set, and is left
	// alone before. Otherwise the driver tries to resize it anyway, and prints a line if
	// that fails for long.
	waits bool
	// watch, if not nil, is called on a goroutine of its own. It reports the slots of each
	// host whenever they change, until done is closed.
	watch func(slots func(hosts []int), done <-chan struct{})
	// bound, if not nil, limits the program's COL by the command line.
	bound func(*rm.COL) error
	// close, if not nil, is called when the job is over.
	close func()

	changed chan struct{} // there may be events
	over    chan struct{} // closed when run has returned

	mu        sync.Mutex
	size      int // of the main set, if not leased; 0: there is none yet
	slots     int
	slotLists int // number of times that slots were set
	col       *rm.COL
	badCOL    bool // a line about an invalid COL was printed
	underWay  bool // a decision is carried out
	answers   int  // decisions that are over
	reported  view // the manager's knowledge
	// moveAfter is the earliest time of the next move between hosts.
	moveAfter time.Duration
}

// view is the state of the job and its slots as events describe it.
type view struct {
	slots       int
	slotLists   int // 0: slots are not known
	size        int // 0: there is no job
	answers     int
	col         *rm.COL
	follows     bool // the job takes changes that it has not asked for
	wish, least int  // the job asks for wish processes, or at least for least; 0: it does not ask
}

// diff returns the events that lead from last to now.
func diff(last, now view) (list []rm.Event) {
	if now.slotLists != last.slotLists {
		list = append(list, rm.Slots{Total: now.slots})
	}
	switch {
	case last.size == 0 && now.size != 0:
		list = append(list, rm.Arrived{Job: rm.Job{ID: theJob, COL: now.col, Size: now.size, Follows: now.follows}})
		last.col, last.follows = now.col, now.follows
	case now.size != last.size || now.answers != last.answers:
		list = append(list, rm.Sized{Job: theJob, Size: now.size})
	}
	if now.col != last.col {
		list = append(list, rm.Told{Job: theJob, COL: now.col})
	}
	if now.follows != last.follows {
		list = append(list, rm.Followed{Job: theJob, Follows: now.follows})
	}
	if now.size != last.size {
		last.wish, last.least = 0, 0 // another size ends a wish for the manager
	}
	if now.wish != last.wish || now.least != last.least {
		ev := rm.Wished{Job: theJob, Size: now.wish, Min: now.least}
		if now.wish == 0 {
			ev.Size = now.size
		}
		if ev.Min == ev.Size {
			ev.Min = 0
		}
		list = append(list, ev)
	}
	return list
}

// theJob is the manager's id of the job.
const theJob rm.JobID = 1

const (
	// followEvery is the interval between attempts to resize a set that no process
	// watches yet.
	followEvery = 100 * time.Millisecond
	// sayUnfollowed is the number of attempts after which a line is printed.
	sayUnfollowed = 50
)

// controlPlane is the part of the job's control plane that a driver uses.
type controlPlane interface {
	Resize(m *protocol.Resize, part func(protocol.Message) bool) error
	Lease(slots int) head.Use
	LeaseMain(slots int, part func(protocol.Message) bool) error
	HostSlots(slots []int)
	Crowded() bool
	Done() <-chan struct{}
}

func newDriver(flag string, m rm.ResourceManager) *driver {
	return &driver{
		flag:    flag,
		manager: m,
		changed: make(chan struct{}, 1),
		over:    make(chan struct{}),
	}
}

// newExternalDriver makes a driver whose manager is a program that connects to the socket
// at path.
func newExternalDriver(path string, job wire.JobID, slots int) (*driver, error) {
	s, err := newRMSocket(path)
	if err != nil {
		return nil, fmt.Errorf("--manager: %w", err)
	}
	s.manager = rm.NewExternal(fmt.Sprintf("%016x", uint64(job)), s.secret)
	d := newDriver("--manager", s)
	d.leased = true
	if slots > 0 {
		d.setSlots(slots)
	}
	s.decided = d.wake
	d.close = s.close
	go s.serve()
	return d, nil
}

// configure adds the driver's callbacks to the configuration of the control plane of a job
// that begins with so many processes.
func (d *driver) configure(cfg *server.Config, begins int) {
	if d.leased {
		cfg.Lease, cfg.Said = begins, d.setCOL
		cfg.Used = func(head.Use) { d.wake() }
		return
	}
	main := cfg.Main
	cfg.Main = func(procs []wire.ProcID) {
		d.update(func() { d.size = len(procs) })
		main(procs)
	}
}

// setCOL takes the COL that a process publishes for its program.
func (d *driver) setCOL(text []byte) {
	c, err := rm.ParseCOL(text)
	if err == nil && d.bound != nil {
		err = d.bound(c)
	}
	d.update(func() {
		if err == nil {
			d.col = c
		} else if !d.badCOL {
			d.badCOL = true
			launch.Say("%s: the scaling that a process describes is not used: %v", d.flag, err)
		}
	})
}

// setSlots sets the number of slots. The caller holds mu, or run has not begun.
func (d *driver) setSlots(n int) {
	d.slots = n
	d.slotLists++
}

// update calls f with mu held, and wakes run.
func (d *driver) update(f func()) {
	d.mu.Lock()
	f()
	d.mu.Unlock()
	d.wake()
}

// wake lets run look for events. It does not block.
func (d *driver) wake() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// run lets the manager decide until the job is over.
func (d *driver) run(p controlPlane) {
	defer close(d.over)
	began := time.Now()
	if d.close != nil {
		defer d.close()
	}
	if d.watch != nil {
		var watching sync.WaitGroup
		defer watching.Wait() // it may have started a program
		watching.Go(func() {
			d.watch(func(hosts []int) {
				p.HostSlots(hosts)
				d.update(func() {
					d.setSlots(total(hosts))
					d.moveAfter = 0
				})
			}, p.Done())
		})
	}
	for {
		now := time.Since(began)
		for _, decision := range d.manager.Step(now, d.events(p)...) {
			d.mu.Lock()
			d.underWay = true
			asked := d.reported.wish > 0 && decision.Size > d.reported.size
			d.mu.Unlock()
			go d.apply(p, decision, asked)
		}
		pause := d.moveBetweenHosts(p, now)
		var clock <-chan time.Time
		if at, ok := d.manager.Next(); ok {
			clock = time.After(at - now)
		}
		if pause > 0 {
			clock = time.After(pause)
		}
		select {
		case <-d.changed:
		case <-clock:
		case <-p.Done():
			return
		}
	}
}

// moveEvery is the pause after a move between hosts that did not happen.
const moveEvery = 10 * time.Second

// moveBetweenHosts moves processes away from hosts with fewer slots than processes, when
// the job has the size that the manager wants: managers do not know hosts. It returns the
// time until the next move, or 0.
func (d *driver) moveBetweenHosts(p controlPlane, now time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	size := d.reported.size
	switch {
	case d.watch == nil || d.reported.slotLists == 0 || d.underWay || size == 0 || !p.Crowded():
		return 0
	case now < d.moveAfter:
		return d.moveAfter - now
	}
	d.underWay, d.moveAfter = true, now+moveEvery
	go d.apply(p, rm.Decision{Job: theJob, Size: size, From: size}, false)
	return 0
}

// wait waits until run has returned, once the job is over.
func (d *driver) wait() {
	if d != nil {
		<-d.over
	}
}

// events returns the events since the last call.
func (d *driver) events(p controlPlane) []rm.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.view(p)
	list := diff(d.reported, now)
	d.reported = now
	return list
}

// view returns the present view. A job whose size changes at the moment keeps the reported
// one: the answer to a decision comes when that is over. The caller holds mu.
func (d *driver) view(p controlPlane) view {
	v := d.reported
	v.slots, v.slotLists = d.slots, d.slotLists
	if v.size != 0 {
		v.col = d.col
	}
	use := head.Use{Has: d.size, Follows: true}
	if d.leased && !d.underWay {
		use = p.Lease(0) // gives unused slots back
	}
	// A manager that gets the job before a list of slots would think that there are none.
	if use.Has == 0 || d.underWay || d.watch != nil && d.slotLists == 0 {
		return v
	}
	v.size, v.answers, v.col = use.Has, d.answers, d.col
	v.follows = !d.waits || use.Follows
	v.wish, v.least = use.Wants, use.Least
	return v
}

// apply carries a decision out, and prints a line if it fails. asked means that the job
// has asked for more processes.
func (d *driver) apply(p controlPlane, decision rm.Decision, asked bool) {
	if d.leased && asked {
		p.Lease(decision.Size)
		d.update(d.answer)
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
		if d.leased {
			err = p.LeaseMain(decision.Size, part)
		} else {
			err = p.Resize(&protocol.Resize{To: decision.Size}, part)
		}
		pause := time.Duration(0)
		if err == nil && last.Op.Why == protocol.WhyNoWatch && (tries < sayUnfollowed || !d.waits) {
			pause = followEvery // processes may watch the set later
		}
		if tries == sayUnfollowed && !d.waits {
			launch.Say("%s: %d processes do not become %d yet: no process calls sessions.Watch", d.flag, decision.From, decision.Size)
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
		launch.Say("%s: %d processes do not become %d: %s", d.flag, decision.From, decision.Size, text)
	}
	d.update(func() {
		if state == change.Done && d.size == decision.From && last.After > 0 {
			d.size = last.After // before the callback about the new main set
		}
		d.answer()
	})
}

// answer notes that a decision is over. The caller holds mu.
func (d *driver) answer() {
	d.underWay = false
	d.answers++
}
