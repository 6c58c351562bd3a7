// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Policy distributes the slots: a pure function of a table. A decision that takes slots
// which others give up is carried out when these are free.
type Policy interface {
	Name() string
	Decide(*Table) []Decision
}

// Policies returns all policies.
func Policies() []Policy {
	return []Policy{SlotsPolicy{}, FIFO{}, FirstFit{}, Easy{}, DMR{}, Ascent{}}
}

// Config is the configuration of a Shared.
type Config struct {
	Policy Policy
	// Horizon is how long the present state is expected to last: within that time a change
	// must save more than it costs. 0: ten minutes.
	Horizon time.Duration
	// MaxPriority bounds the priorities that jobs claim; 0: no bound.
	MaxPriority int
}

// Pause of a job after a change that did not happen. It doubles each time.
const (
	firstRest = 10 * time.Second
	lastRest  = time.Hour
)

// Shared is the manager of several jobs: a table and a policy. It checks each decision of
// the policy before it returns it.
type Shared struct {
	cfg   Config
	table Table
	byID  map[JobID]*Entry
	held  []Decision // take slots that are not free yet
}

// NewShared makes a manager without slots and jobs.
func NewShared(cfg Config) *Shared {
	s := &Shared{cfg: cfg, byID: map[JobID]*Entry{}}
	s.table.Horizon = cmp.Or(cfg.Horizon, 10*time.Minute)
	return s
}

// Step implements ResourceManager.
func (s *Shared) Step(now time.Duration, events ...Event) []Decision {
	t := &s.table
	for _, e := range t.Jobs { // whose rest is over may be more
		e.menuValid = e.menuValid && !(t.Now < e.Until && e.Until <= now)
	}
	t.Now = max(t.Now, now)
	for _, ev := range events {
		s.event(ev)
	}
	out := s.release(nil)
	most := max(t.Slots, s.promised()) // slots may have been lost
	for _, d := range s.cfg.Policy.Decide(t) {
		if err := s.check(d); err != nil {
			panic(fmt.Sprintf("BUG: policy %s: %v", s.cfg.Policy.Name(), err))
		}
		e := s.byID[d.Job]
		e.Target, e.held, e.menuValid = d.Size, true, false
		s.held = append(s.held, d)
	}
	if s.promised() > most {
		panic(fmt.Sprintf("BUG: policy %s gives out %d of %d slots", s.cfg.Policy.Name(), s.promised(), t.Slots))
	}
	return s.release(out)
}

// Next implements ResourceManager.
func (s *Shared) Next() (at time.Duration, ok bool) {
	for _, e := range s.table.Jobs {
		if (e.Follows || e.Size == 0) && e.Until > s.table.Now && (!ok || e.Until < at) {
			at, ok = e.Until, true
		}
	}
	return at, ok
}

// Table returns the policy's table, which is valid until the next Step.
func (s *Shared) Table() *Table { return &s.table }

func (s *Shared) event(ev Event) {
	t := &s.table
	switch ev := ev.(type) {
	case Slots:
		t.Slots, t.Host = max(0, ev.Total), max(0, ev.Host)
		for _, e := range t.Jobs {
			e.menuValid = false
		}
		s.drop()
	case Arrived:
		if s.byID[ev.Job.ID] != nil {
			return
		}
		e := &Entry{Job: ev.Job, Asked: t.Now, Began: t.Now}
		e.COL = s.bounded(e.COL)
		s.byID[e.ID] = e
		t.Jobs = append(t.Jobs, e)
	case Told:
		if e := s.byID[ev.Job]; e != nil {
			e.COL, e.menuValid = s.bounded(ev.COL), false
		}
	case Followed:
		if e := s.byID[ev.Job]; e != nil {
			if e.Follows, e.menuValid = ev.Follows, false; e.held && e.Size > 0 && e.Wish == 0 && !ev.Follows {
				s.unhold(e)
			}
		}
	case Wished:
		if e := s.byID[ev.Job]; e != nil && e.Size > 0 {
			if e.Wish, e.WishMin, e.Asked, e.menuValid = ev.Size, ev.Min, t.Now, false; ev.Size < 1 || ev.Size == e.Size {
				e.Wish, e.WishMin = 0, 0
			}
		}
	case Sized:
		if e := s.byID[ev.Job]; e != nil && ev.Size > 0 {
			s.sized(e, ev.Size)
		} else if e != nil { // it could not be started and still waits
			s.sized(e, e.Size)
		}
	case Ended:
		if e := s.byID[ev.Job]; e != nil {
			delete(s.byID, ev.Job)
			t.Jobs = slices.DeleteFunc(t.Jobs, func(x *Entry) bool { return x == e })
			s.held = slices.DeleteFunc(s.held, func(d Decision) bool { return d.Job == ev.Job })
		}
	}
}

// bounded returns a COL with its priority limited.
func (s *Shared) bounded(c *COL) *COL {
	if c == nil || s.cfg.MaxPriority == 0 || c.Priority <= s.cfg.MaxPriority {
		return c
	}
	d := *c
	d.Priority = s.cfg.MaxPriority
	return &d
}

// sized handles the result of a change.
func (s *Shared) sized(e *Entry, size int) {
	now := s.table.Now
	failed := size == e.Size && e.Target != 0 && !e.held
	if size != e.Size {
		if e.Size == 0 {
			e.Began = now
		}
		e.Size, e.rests, e.Wish, e.WishMin = size, 0, 0, 0
		e.Until = now + seconds(e.col().Settle)
	}
	if failed {
		e.Wish, e.WishMin = 0, 0
		e.rests = min(max(firstRest, 2*e.rests), lastRest)
		e.Until = now + e.rests
	}
	if e.menuValid = false; !e.held {
		e.Target = 0
	} else if e.Target == e.Size || !s.allowsHeld(e) {
		s.unhold(e)
	}
	s.drop()
}

// allowsHeld reports whether a job of the present size may still get the size it was
// promised.
func (s *Shared) allowsHeld(e *Entry) bool { return e.Size == 0 || e.col().May(e.Size, e.Target) }

// unhold takes a promise back.
func (s *Shared) unhold(e *Entry) {
	e.Target, e.held, e.menuValid = 0, false, false
	s.held = slices.DeleteFunc(s.held, func(d Decision) bool { return d.Job == e.ID })
}

// promised returns the number of slots that are taken when all decisions have happened.
func (s *Shared) promised() int {
	sum := 0
	for _, e := range s.table.Jobs {
		if e.Target != 0 {
			sum += s.table.slots(e, e.Target)
		} else {
			sum += s.table.slots(e, e.Size)
		}
	}
	return sum
}

// drop takes back the latest promises for which there will be no slots.
func (s *Shared) drop() {
	for len(s.held) > 0 && s.promised() > s.table.Slots {
		s.unhold(s.byID[s.held[len(s.held)-1].Job])
	}
}

// release returns the decisions for which there are slots, in order: no job overtakes one
// that waits for slots.
func (s *Shared) release(out []Decision) []Decision {
	t := &s.table
	used := 0
	for _, e := range t.Jobs {
		if used += t.slots(e, e.Size); !e.held {
			used += max(0, t.slots(e, e.Target)-t.slots(e, e.Size))
		}
	}
	n := 0
	for _, d := range s.held {
		e := s.byID[d.Job]
		more := max(0, t.slots(e, d.Size)-t.slots(e, e.Size))
		if more > 0 && used+more > t.Slots {
			break
		}
		used += more
		e.held, d.From = false, e.Size
		out = append(out, d)
		n++
	}
	s.held = slices.Delete(s.held, 0, n)
	return out
}

// check checks a decision, except for the number of slots.
func (s *Shared) check(d Decision) error {
	e := s.byID[d.Job]
	switch {
	case e == nil:
		return fmt.Errorf("there is no job %d", d.Job)
	case e.Target != 0:
		return fmt.Errorf("job %d, of %d processes, is already to have %d, not %d", d.Job, e.Size, e.Target, d.Size)
	case !s.table.may(e, d.Size):
		return fmt.Errorf("job %d, of %d processes, may not have %d", d.Job, e.Size, d.Size)
	}
	return nil
}

func seconds(s float64) time.Duration {
	const most = float64(365 * 24 * time.Hour)
	return time.Duration(min(s*float64(time.Second), most))
}
