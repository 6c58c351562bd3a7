// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"slices"
	"time"

	"gompi/launcher/rm"
)

// Pool is the table of jobs that have leased slots or wait for some. Its owner makes one
// call at a time, and then sends the lines for jobs (Take).
type Pool struct {
	manager rm.ResourceManager
	total   int
	last    rm.JobID
	jobs    []*Job // in order of arrival
	news    []rm.Event
}

// Job is a job of a pool.
type Job struct {
	id      rm.JobID
	number  string // as gompictl shows it
	program string
	pid     int

	came, began time.Duration
	start       int
	has         int    // slots; 0: it waits
	target      int    // size of the decision that it has not answered; 0: none
	of          uint32 // the number of its last decision
	wish, least int
	follows     bool
	cut         bool // it is not heard any more, but its slots are not free yet
	out         [][]byte
}

// New makes a pool of total slots, which the manager distributes.
func New(manager rm.ResourceManager, total int) *Pool {
	return &Pool{manager: manager, total: total, news: []rm.Event{rm.Slots{Total: total}}}
}

// Join takes a job into the queue, from its first line.
func (p *Pool) Join(now time.Duration, l *line, pid int) (*Job, error) {
	c, err := l.col()
	switch {
	case err != nil:
		return nil, err
	case len(l.Job) != 16:
		return nil, fmt.Errorf("a job of the number %.40q", l.Job)
	case slices.ContainsFunc(p.jobs, func(j *Job) bool { return j.number == l.Job }):
		return nil, fmt.Errorf("job %s is here already", l.Job)
	}
	if l.Start == 0 {
		l.Start = p.total
	}
	if l.Start > p.total {
		if c == nil || c.Min == 0 || c.Min > p.total {
			return nil, fmt.Errorf("it asks for %d processes, and there are %d slots", l.Start, p.total)
		}
		l.Start = p.total
	}
	p.last++
	j := &Job{id: p.last, number: l.Job, program: l.Program, pid: pid, came: now, start: l.Start}
	before := 0
	for _, o := range p.jobs {
		if o.has == 0 && o.target == 0 && !o.cut {
			before++
		}
	}
	p.jobs = append(p.jobs, j)
	j.tell(&line{Event: "hello", Version: Version, Total: p.total, Before: before})
	p.news = append(p.news, rm.Arrived{Job: rm.Job{ID: j.id, COL: c, Start: l.Start, Limit: time.Duration(l.Limit * float64(time.Second))}})
	return j, nil
}

// Hear takes a line of a job. On an error the job breaks the rules, and must be cut off.
func (p *Pool) Hear(now time.Duration, j *Job, l *line) error {
	if j.has == 0 && l.Event != "sized" {
		return fmt.Errorf("%q of a job that has not begun", l.Event)
	}
	switch l.Event {
	case "sized":
		return p.sized(now, j, l)
	case "wished":
		if l.Size < 1 {
			return fmt.Errorf("a wish for %d processes", l.Size)
		}
		j.wish, j.least = l.Size, l.Min
		if l.Size == j.has {
			j.wish, j.least = 0, 0
		}
		p.news = append(p.news, rm.Wished{Job: j.id, Size: l.Size, Min: l.Min})
	case "told":
		c, err := l.col()
		if err != nil {
			return err
		}
		p.news = append(p.news, rm.Told{Job: j.id, COL: c})
	case "followed":
		j.follows = l.Follows
		p.news = append(p.news, rm.Followed{Job: j.id, Follows: l.Follows})
	default:
		return fmt.Errorf("event %.40q", l.Event)
	}
	return nil
}

// sized handles a job's report of its size.
func (p *Pool) sized(now time.Duration, j *Job, l *line) error {
	switch {
	case l.Size < 1:
		return fmt.Errorf("a job of %d processes", l.Size)
	case l.Of == 0 && j.target != 0:
		return nil // its answer will report its size
	case l.Of != 0 && (j.target == 0 || l.Of != j.of):
		return fmt.Errorf("an answer to decision %d", l.Of)
	case l.Size > max(j.has, j.target):
		return fmt.Errorf("%d processes, and it has %d slots", l.Size, max(j.has, j.target))
	case l.Of == 0 && l.Size == j.has:
		return nil
	}
	if j.has == 0 {
		j.began = now
	}
	if l.Size != j.has {
		j.wish, j.least = 0, 0
	}
	j.has, j.target = l.Size, 0
	p.news = append(p.news, rm.Sized{Job: j.id, Size: l.Size})
	return nil
}

// Cut cuts a job off: it is not heard any more. For the manager it has ended, and its
// slots are lost until Leave, as its processes may still run.
func (p *Pool) Cut(j *Job) {
	if !j.cut {
		j.cut, j.out = true, nil
		p.news = append(p.news, rm.Ended{Job: j.id}, p.shared())
	}
}

// Leave removes a job of which nothing is left.
func (p *Pool) Leave(j *Job) {
	p.jobs = slices.DeleteFunc(p.jobs, func(o *Job) bool { return o == j })
	if j.cut {
		p.news = append(p.news, p.shared())
	} else {
		p.news = append(p.news, rm.Ended{Job: j.id})
	}
}

// shared returns the number of slots for the manager.
func (p *Pool) shared() rm.Slots {
	total := p.total
	for _, j := range p.jobs {
		if j.cut {
			total -= max(j.has, j.target)
		}
	}
	return rm.Slots{Total: max(0, total)}
}

// Slots sets the number of slots.
func (p *Pool) Slots(total int) {
	p.total = total
	p.news = append(p.news, p.shared())
	for _, j := range p.jobs {
		j.tell(&line{Event: "slots", Total: total})
	}
}

// Step lets the manager decide.
func (p *Pool) Step(now time.Duration) {
	const rounds = 8 // bounds decisions that are made again although they cannot be carried out
	for i := 0; i == 0 || i < rounds && len(p.news) > 0; i++ {
		news := p.news
		p.news = nil
		for _, d := range p.manager.Step(now, news...) {
			i := slices.IndexFunc(p.jobs, func(j *Job) bool { return j.id == d.Job && !j.cut })
			if i < 0 {
				continue
			}
			j := p.jobs[i]
			more := d.Size - max(j.has, j.target)
			if j.target != 0 || d.Size < 1 || more > 0 && p.Taken()+more > p.total {
				p.news = append(p.news, rm.Sized{Job: j.id, Size: j.has}) // it is not carried out
				continue
			}
			j.target = d.Size
			j.of++
			j.tell(&line{Event: "decided", Size: d.Size, Of: j.of, Wished: j.wish != 0 && d.Size > j.has})
		}
	}
}

// Next returns the time for the next Step if no event comes before.
func (p *Pool) Next() (time.Duration, bool) { return p.manager.Next() }

// Taken returns the number of slots that jobs have, or were promised.
func (p *Pool) Taken() int {
	sum := 0
	for _, j := range p.jobs {
		sum += max(j.has, j.target)
	}
	return sum
}

func (j *Job) tell(l *line) {
	if !j.cut {
		j.out = append(j.out, l.encode())
	}
}

// Take returns the lines to send to a job.
func (j *Job) Take() [][]byte {
	list := j.out
	j.out = nil
	return list
}

// lines describes the head, and its jobs in order of arrival.
func (p *Pool) lines(now time.Duration, text string) []*line {
	list := []*line{{Event: "head", Version: Version, Total: p.total, Taken: p.Taken(), Text: text}}
	for _, j := range p.jobs {
		since := j.came
		if j.has > 0 {
			since = j.began
		}
		list = append(list, &line{Event: "job", Job: j.number, Program: j.program, PID: j.pid, Start: j.start, Size: max(j.has, j.wish), Min: j.least,
			Taken: j.has, Target: j.target, Follows: j.follows, For: (now - since).Seconds()})
	}
	return list
}
