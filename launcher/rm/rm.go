// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"gompi/internal/resize/col"
)

// COL is what a job tells of its scaling.
type COL = col.COL

// ParseCOL reads the JSON form of a COL.
func ParseCOL(text []byte) (*COL, error) { return col.Decode(text) }

// JobID names a job to a manager, for good.
type JobID uint32

// ResourceManager decides. Its owner makes one call at a time, carries out the
// decisions, and tells what came of them as events.
type ResourceManager interface {
	// Step takes what has happened until now, a span since some moment that does not go
	// back, and returns what is to be done, in this order. It never blocks. Step
	// without events is a look at the clock.
	Step(now time.Duration, events ...Event) []Decision
	// Next is when Step wants to be called again if nothing happens before; false: only
	// when something does.
	Next() (time.Duration, bool)
}

// Decision is how many processes a job is to have. Its owner answers each with a Sized:
// of the new size, or of the old one if the change has not happened.
type Decision struct {
	Job  JobID
	Size int // at least 1
	// From is how many it has: 0: it is to start.
	From int
}

// Event is one of Slots, Arrived, Wished, Sized, Ended, Told and Followed. Those about a job that the
// manager does not know are nothing.
type Event interface{ event() }

// Slots: there are so many now.
type Slots struct {
	Total int
	// Host is how many of them a host has, for jobs that take hosts whole; 0: there are
	// no hosts.
	Host int
}

// Arrived: there is a job of which the manager has not heard.
type Arrived struct{ Job Job }

// Wished: a job asks for a size of its own accord. A later wish replaces it, and one
// for the size that it has withdraws it. It is over when a Sized tells of another size.
type Wished struct {
	Job JobID
	// Size is what it wants; Min is the least that will do, of more than it has; 0:
	// only Size does.
	Size, Min int
}

// Sized: a change is over, and the job has so many processes; also of a change that
// the manager has not decided.
type Sized struct {
	Job  JobID
	Size int
}

// Ended: nothing is left of a job.
type Ended struct{ Job JobID }

// Told: a job has replaced its COL.
type Told struct {
	Job JobID
	COL *COL
}

// Followed: a job takes changes from now on that it has not asked for, or takes no more.
type Followed struct {
	Job     JobID
	Follows bool
}

func (Slots) event()    {}
func (Arrived) event()  {}
func (Wished) event()   {}
func (Sized) event()    {}
func (Ended) event()    {}
func (Told) event()     {}
func (Followed) event() {}

// Job is one job, as its owner tells of it.
type Job struct {
	ID JobID
	// COL is what it says of itself; nil: nothing. Managers only read it.
	COL *COL
	// Start is how many processes it asks to begin with; 0: COL's Pref, else Min, else 1.
	Start int
	// Limit is how long it runs at most, with Start processes; 0: not known.
	Limit time.Duration
	// Follows: it takes changes that it has not asked for.
	Follows bool
	// Size is how many processes it has; 0: it waits.
	Size int
}
