// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"time"

	"gompi/launcher/rm"
)

// Config is the system that a mix runs on.
type Config struct {
	Manager rm.ResourceManager
	Slots   int
	Host    int // slots of a host; 0: there are no hosts
}

// Result is the outcome of a mix.
type Result struct {
	Jobs []Done // in the order of the mix
	// Load is the number of slots that were taken over time.
	Load []Load
	// Changes is the number of changes of size; Stopped is the time that jobs stood still
	// for them, in slot seconds.
	Changes int
	Stopped float64
	// Work is the work done, in seconds of one process; Taken the slot seconds that jobs
	// had; End the end of the last job.
	Work, Taken float64
	End         time.Duration
	// Steps is the number of calls of the manager.
	Steps int
}

// Done has the times at which a job arrived, began and ended.
type Done struct{ Came, Began, Ended time.Duration }

// Load is the number of slots that are taken from a moment on.
type Load struct {
	At    time.Duration
	Taken int
}

// ErrStuck means that jobs are left that never begin, or never end.
var ErrStuck = errors.New("sim: jobs are left")

// job is a job that has arrived and not ended.
type job struct {
	id      rm.JobID
	say     *Job
	size    int     // 0: the job waits
	target  int     // size after the change under way; 0: none
	left    float64 // work left
	since   time.Duration
	moments int // number of its moments; only the last one counts
}

// moment is a timed event: the end of a job, or of its change.
type moment struct {
	at   time.Duration
	j    *job
	when int
	seq  int // orders moments of equal time
}

type moments []moment

func (m moments) Len() int { return len(m) }
func (m moments) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(m[i].at, m[j].at), m[i].seq-m[j].seq) < 0
}
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)   { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

type run struct {
	cfg   Config
	now   time.Duration
	jobs  map[rm.JobID]*job
	queue moments
	seq   int
	res   Result
	taken int
}

// Run runs a mix, in order of arrival, to its end. It fails with ErrStuck, or if the
// manager breaks the rules.
func Run(cfg Config, jobs []Job) (*Result, error) {
	r := &run{cfg: cfg, jobs: map[rm.JobID]*job{}}
	r.res.Jobs = make([]Done, len(jobs))
	next := 0
	events := []rm.Event{rm.Slots{Total: cfg.Slots, Host: cfg.Host}}
	for {
		for ; next < len(jobs) && span(jobs[next].At) <= r.now; next++ {
			events = append(events, r.comes(rm.JobID(next), &jobs[next]))
		}
		for len(r.queue) > 0 && r.queue[0].at <= r.now {
			if ev := r.moment(heap.Pop(&r.queue).(moment)); ev != nil {
				events = append(events, ev)
			}
		}
		// Changes without cost have happened at once, and may lead to more decisions.
		for first := true; first || len(events) > 0; first = false {
			r.res.Steps++
			list := cfg.Manager.Step(r.now, events...)
			events = events[:0]
			for _, d := range list {
				done, err := r.decided(d)
				if err != nil {
					return nil, err
				}
				if done {
					events = append(events, rm.Sized{Job: d.Job, Size: d.Size})
				}
			}
		}
		if r.load(); next == len(jobs) && len(r.jobs) == 0 {
			r.res.End = r.now
			return &r.res, nil
		}
		at, ok := cfg.Manager.Next()
		if next < len(jobs) && (!ok || span(jobs[next].At) < at) {
			at, ok = span(jobs[next].At), true
		}
		if len(r.queue) > 0 && (!ok || r.queue[0].at < at) {
			at, ok = r.queue[0].at, true
		}
		if !ok {
			return nil, r.stuck()
		}
		r.now = max(r.now, at)
	}
}

func (r *run) comes(id rm.JobID, j *Job) rm.Event {
	r.jobs[id] = &job{id: id, say: j, left: j.Work, since: r.now}
	r.res.Jobs[id].Came = r.now
	return rm.Arrived{Job: rm.Job{ID: id, COL: j.COL, Start: j.NP, Limit: span(j.Limit), Follows: j.Follows}}
}

// speed returns the work that a job does in a second.
func (j *job) speed() float64 {
	switch {
	case j.size == 0 || j.target != 0:
		return 0
	case j.say.COL == nil:
		return float64(j.size)
	}
	return j.say.COL.Speedup(j.size)
}

// work records the work of a job until now.
func (r *run) work(j *job) {
	passed := (r.now - j.since).Seconds()
	did := min(j.left, passed*j.speed())
	j.left -= did
	r.res.Work += did
	r.res.Taken += passed * float64(r.slots(j))
	if j.target != 0 {
		r.res.Stopped += passed * float64(r.slots(j))
	}
	j.since = r.now
}

// slots returns the number of slots that a job takes: during a change, the larger of both.
func (r *run) slots(j *job) int {
	if j.say.COL == nil {
		return max(j.size, j.target)
	}
	m := j.say.COL.Mapping
	return max(m.Slots(j.size, r.cfg.Host), m.Slots(j.target, r.cfg.Host))
}

func (r *run) push(j *job, at time.Duration) {
	j.moments++
	r.seq++
	heap.Push(&r.queue, moment{at, j, j.moments, r.seq})
}

// goOn schedules the end of a job at its present size.
func (r *run) goOn(j *job) {
	if s := j.speed(); s > 0 {
		r.push(j, r.now+max(1, span(j.left/s)))
	}
}

// moment handles the end of a change, or of a job. It returns nil if the job has changed
// since.
func (r *run) moment(m moment) rm.Event {
	j := m.j
	if m.when != j.moments || r.jobs[j.id] != j {
		return nil
	}
	before := r.slots(j)
	r.work(j)
	if j.target != 0 {
		j.size, j.target = j.target, 0
		r.taken += r.slots(j) - before
		r.goOn(j)
		return rm.Sized{Job: j.id, Size: j.size}
	}
	r.taken -= before
	r.res.Jobs[j.id].Ended = r.now
	delete(r.jobs, j.id)
	return rm.Ended{Job: j.id}
}

// decided carries a decision out; done means at once.
func (r *run) decided(d rm.Decision) (done bool, err error) {
	j := r.jobs[d.Job]
	if j == nil || j.size != d.From || d.Size < 1 || d.Size == d.From || j.target != 0 {
		return false, fmt.Errorf("sim: the manager decides %+v, which cannot be", d)
	}
	before := r.slots(j)
	r.work(j)
	cost := 0.0
	if d.From == 0 {
		r.res.Jobs[d.Job].Began = r.now
	} else if r.res.Changes++; j.say.COL != nil {
		cost = j.say.COL.Seconds(d.From, d.Size)
	}
	if j.target = d.Size; cost == 0 {
		j.size, j.target = d.Size, 0
	}
	if r.taken += r.slots(j) - before; r.taken > r.cfg.Slots {
		return false, fmt.Errorf("sim: the manager decides %+v: %d of %d slots are taken", d, r.taken, r.cfg.Slots)
	}
	if cost == 0 {
		r.goOn(j)
		return true, nil
	}
	r.push(j, r.now+max(1, span(cost)))
	return false, nil
}

// load records how many slots are taken.
func (r *run) load() {
	l := r.res.Load
	switch n := len(l); {
	case n > 0 && l[n-1].At == r.now:
		l[n-1].Taken = r.taken
	case n == 0 || l[n-1].Taken != r.taken:
		r.res.Load = append(l, Load{r.now, r.taken})
	}
}

// stuck makes an error that names the first job that is left.
func (r *run) stuck() error {
	var first *job
	for _, j := range r.jobs {
		if first == nil || j.id < first.id {
			first = j
		}
	}
	what := fmt.Sprintf("makes no progress with %d processes", first.size)
	if first.size == 0 {
		what = fmt.Sprintf("never begins: it asks for %d processes, there are %d slots", first.say.NP, r.cfg.Slots)
	}
	return fmt.Errorf("%w: %d; job %d (%.40q) %s", ErrStuck, len(r.jobs), first.id, first.say.Name, what)
}

// span converts seconds to a duration.
func span(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// Summary is a result in a few numbers. Times are means over all jobs.
type Summary struct {
	Jobs        int
	Makespan    time.Duration
	Wait        time.Duration // from arrival to start
	Turnaround  time.Duration // from arrival to end
	Utilisation float64       // share of the slots that jobs had
	Efficiency  float64       // work done per slot second that jobs had
	Changes     int
	Stopped     float64 // share of their slot seconds in which jobs stood still for changes
}

// Summary summarizes a result for a number of slots.
func (r *Result) Summary(slots int) Summary {
	s := Summary{Jobs: len(r.Jobs), Makespan: r.End, Changes: r.Changes}
	var wait, around float64
	for _, j := range r.Jobs {
		wait += (j.Began - j.Came).Seconds()
		around += (j.Ended - j.Came).Seconds()
	}
	n := float64(max(1, len(r.Jobs)))
	s.Wait, s.Turnaround = span(wait/n), span(around/n)
	if all := r.End.Seconds() * float64(slots); all > 0 {
		s.Utilisation = r.Taken / all
	}
	if r.Taken > 0 {
		s.Efficiency, s.Stopped = r.Work/r.Taken, r.Stopped/r.Taken
	}
	return s
}

// Curve returns the mean share of taken slots in each of parts intervals from 0 to end.
func (r *Result) Curve(slots, parts int, end time.Duration) []float64 {
	y := make([]float64, parts)
	if end <= 0 || slots <= 0 {
		return y
	}
	step := float64(end) / float64(parts)
	for i, l := range r.Load {
		to := r.End
		if i+1 < len(r.Load) {
			to = r.Load[i+1].At
		}
		for k := int(float64(l.At) / step); k < parts && float64(k)*step < float64(to); k++ {
			from, till := max(float64(l.At), float64(k)*step), min(float64(to), float64(k+1)*step)
			y[k] += max(0, till-from) / step * float64(l.Taken) / float64(slots)
		}
	}
	return y
}
