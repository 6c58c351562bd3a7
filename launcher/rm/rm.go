// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"gompi/internal/resize/col"
)

// COL is a job's description of its scaling.
type COL = col.COL

// ParseCOL reads the JSON form of a COL.
func ParseCOL(text []byte) (*COL, error) { return col.Decode(text) }

// JobID identifies a job to a manager. It is not used again.
type JobID uint32

// ResourceManager decides the sizes of jobs. Its owner makes one call at a time, carries
// out the decisions, and reports the results as events.
type ResourceManager interface {
	// Step takes the events until now, a time that never goes back, and returns decisions
	// to carry out in order. It never blocks. Step without events lets the manager look at
	// the clock.
	Step(now time.Duration, events ...Event) []Decision
	// Next returns the time for the next Step if no event comes before; false: there is
	// none.
	Next() (time.Duration, bool)
}

// Decision is the size that a job is to have. Its owner answers each decision with a
// Sized: of the new size, or of the old one if the change did not happen.
type Decision struct {
	Job  JobID
	Size int // at least 1
	// From is its present size; 0: it is to start.
	From int
}

// Event is one of Slots, Arrived, Wished, Sized, Ended, Told and Followed. Events about an
// unknown job are ignored.
type Event interface{ event() }

// Slots gives the number of slots.
type Slots struct {
	Total int
	// Host is the number of slots of a host, for jobs that take whole hosts; 0: there are
	// no hosts.
	Host int
}

// Arrived announces a job.
type Arrived struct{ Job Job }

// Wished is a job's own request for a size. A later one replaces it, and one for its
// present size withdraws it. A Sized with another size ends it.
type Wished struct {
	Job JobID
	// Size is the requested size. Min is the least size above the present one that is
	// accepted too; 0: only Size is.
	Size, Min int
}

// Sized ends a change: the job has this size. Changes that the manager has not decided are
// reported too.
type Sized struct {
	Job  JobID
	Size int
}

// Ended means that all of a job has ended.
type Ended struct{ Job JobID }

// Told replaces the COL of a job.
type Told struct {
	Job JobID
	COL *COL
}

// Followed tells whether a job takes changes that it has not asked for, from now on.
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

// Job describes a job to the manager.
type Job struct {
	ID JobID
	// COL is the job's description of itself; nil: none. Managers only read it.
	COL *COL
	// Start is the number of processes it asks to begin with; 0: COL's Pref, else Min,
	// else 1.
	Start int
	// Limit bounds its run time with Start processes; 0: not known.
	Limit time.Duration
	// Follows: the job takes changes that it has not asked for.
	Follows bool
	// Size is its number of processes; 0: it waits.
	Size int
}
