// SPDX-License-Identifier: Apache-2.0

package rm

import "time"

// Follow is a manager that keeps the first job at as many processes as there are slots:
// for lists of hosts that others write. It ignores a list without slots.
type Follow struct {
	now   time.Duration
	slots int

	job      JobID
	known    bool
	size     int
	underWay bool
	rest     time.Duration // pause after a change that did not happen
	until    time.Duration
}

// Step implements ResourceManager.
func (f *Follow) Step(now time.Duration, events ...Event) []Decision {
	f.now = max(f.now, now)
	for _, ev := range events {
		switch ev := ev.(type) {
		case Slots:
			if total := min(ev.Total, MostProcesses); total != f.slots {
				f.slots, f.rest, f.until = total, 0, 0
			}
		case Arrived:
			if !f.known && ev.Job.Size > 0 {
				f.job, f.known, f.size = ev.Job.ID, true, ev.Job.Size
			}
		case Sized:
			if f.known && ev.Job == f.job && ev.Size > 0 {
				if f.rest = min(max(firstRest, 2*f.rest), lastRest); ev.Size != f.size || !f.underWay {
					f.rest = 0
				}
				f.size, f.underWay, f.until = ev.Size, false, f.now+f.rest
			}
		case Ended:
			if f.known && ev.Job == f.job {
				f.slots = 0
			}
		}
	}
	if !f.wants() || f.now < f.until {
		return nil
	}
	f.underWay = true
	return []Decision{{f.job, f.slots, f.size}}
}

// wants reports whether the job should be resized.
func (f *Follow) wants() bool { return f.known && !f.underWay && f.slots > 0 && f.slots != f.size }

// Next implements ResourceManager.
func (f *Follow) Next() (time.Duration, bool) { return f.until, f.wants() && f.until > f.now }
