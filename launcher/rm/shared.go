// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Policy shares out the slots: a pure function of a table. Decisions that take slots
// which others of them give up are carried out when these are free.
type Policy interface {
	Name() string
	Decide(*Table) []Decision
}

// Policies are all that there are.
func Policies() []Policy {
	return []Policy{SlotsPolicy{}, FIFO{}, FirstFit{}, Easy{}, DMR{}, Ascent{}}
}

// Config is what Shared is told.
type Config struct {
	Policy Policy
	// Horizon is how long the world is believed to stay as it is: within that time a
	// change must save more than it costs. 0: ten minutes.
	Horizon time.Duration
	// MaxPriority bounds what jobs claim; 0: nothing does.
	MaxPriority int
}

// How long a job rests whose change has not happened: twice as long each time.
const (
	firstRest = 10 * time.Second
	lastRest  = time.Hour
)

// Shared is the manager of several jobs: a table, and a policy. It holds each decision
// against the rules before anybody hears of it.
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
		e.listed = e.listed && !(t.Now < e.Until && e.Until <= now)
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
		e.Target, e.held, e.listed = d.Size, true, false
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

// Table is what the policy sees, to be read until the next Step.
func (s *Shared) Table() *Table { return &s.table }

func (s *Shared) event(ev Event) {
	t := &s.table
	switch ev := ev.(type) {
	case Slots:
		t.Slots, t.Host = max(0, ev.Total), max(0, ev.Host)
		for _, e := range t.Jobs {
			e.listed = false
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
			e.COL, e.listed = s.bounded(ev.COL), false
		}
	case Followed:
		if e := s.byID[ev.Job]; e != nil {
			if e.Follows, e.listed = ev.Follows, false; e.held && e.Size > 0 && e.Wish == 0 && !ev.Follows {
				s.unhold(e)
			}
		}
	case Wished:
		if e := s.byID[ev.Job]; e != nil && e.Size > 0 {
			if e.Wish, e.WishMin, e.Asked, e.listed = ev.Size, ev.Min, t.Now, false; ev.Size < 1 || ev.Size == e.Size {
				e.Wish, e.WishMin = 0, 0
			}
		}
	case Sized:
		if e := s.byID[ev.Job]; e != nil && ev.Size > 0 {
			s.sized(e, ev.Size)
		} else if e != nil { // it could not be started: it waits on
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

// bounded is a COL with a priority that a job may have.
func (s *Shared) bounded(c *COL) *COL {
	if c == nil || s.cfg.MaxPriority == 0 || c.Priority <= s.cfg.MaxPriority {
		return c
	}
	d := *c
	d.Priority = s.cfg.MaxPriority
	return &d
}

// sized takes what came of a change.
func (s *Shared) sized(e *Entry, size int) {
	now := s.table.Now
	failed := size == e.Size && e.Target != 0 && !e.held
	if size != e.Size {
		if e.Size == 0 {
			e.Began = now
		}
		e.Size, e.rests, e.Wish, e.WishMin = size, 0, 0, 0
		e.Until = now + seconds(e.says().Settle)
	}
	if failed {
		e.Wish, e.WishMin = 0, 0
		e.rests = min(max(firstRest, 2*e.rests), lastRest)
		e.Until = now + e.rests
	}
	if e.listed = false; !e.held {
		e.Target = 0
	} else if e.Target == e.Size || !s.allowsHeld(e) {
		s.unhold(e)
	}
	s.drop()
}

// allowsHeld reports whether what was promised to a job may still be, of the size that
// it has now.
func (s *Shared) allowsHeld(e *Entry) bool { return e.Size == 0 || e.says().May(e.Size, e.Target) }

// unhold takes a promise back.
func (s *Shared) unhold(e *Entry) {
	e.Target, e.held, e.listed = 0, false, false
	s.held = slices.DeleteFunc(s.held, func(d Decision) bool { return d.Job == e.ID })
}

// promised is how many slots are taken when all that was decided has happened.
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

// drop takes the latest promises back that there will be no slots for.
func (s *Shared) drop() {
	for len(s.held) > 0 && s.promised() > s.table.Slots {
		s.unhold(s.byID[s.held[len(s.held)-1].Job])
	}
}

// release lets those decisions be carried out for which there are slots, in order:
// nobody overtakes who waits for slots.
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

// check says what is wrong with a decision, but for the slots.
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
