// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Protocol is the version of External's lines.
const Protocol = 1

// Bounds of the lines of the program, and of the lines to it.
const (
	MaxLine  = 4 << 10 // bytes of a line from the program
	maxLines = 1 << 12 // unread lines to the program
)

// ErrBehind means that the program does not read its lines.
var ErrBehind = errors.New("rm: the manager does not read its lines")

// External is a manager whose decisions another program makes: events go to it and
// decisions come from it as lines of JSON (docs/managers.md). It has no socket: its owner
// carries the lines. While no program is connected it acts like SlotsPolicy.
type External struct {
	secret string
	name   string

	slots Slots
	jobs  []*Entry // with Job, Target, Wish and WishMin set
	out   [][]byte
	line  int        // number of the last line from the program
	there bool       // a program is connected
	list  []Decision // not returned by Step yet
}

// NewExternal makes a manager for the jobs of a head of this name. A program without the
// secret is refused.
func NewExternal(name, secret string) *External { return &External{name: name, secret: secret} }

// outLine is a line to the program.
type outLine struct {
	Event   string  `json:"event"`
	Version int     `json:"version,omitempty"`
	Head    string  `json:"head,omitempty"`
	Job     *JobID  `json:"job,omitempty"`
	Size    *int    `json:"size,omitempty"`
	Start   int     `json:"start,omitempty"`
	Limit   float64 `json:"limit,omitempty"` // seconds
	Follows bool    `json:"follows,omitempty"`
	COL     *COL    `json:"col,omitempty"`
	Min     int     `json:"min,omitempty"`
	Total   *int    `json:"total,omitempty"`
	Host    int     `json:"host,omitempty"`
	Line    int     `json:"line,omitempty"`
	Text    string  `json:"text,omitempty"`
}

// inLine is a line from the program: the first one has Version and Secret, each other one
// is a decision.
type inLine struct {
	Version int    `json:"version"`
	Secret  string `json:"secret"`
	Job     *JobID `json:"job"`
	Size    int    `json:"size"`
}

func (x *External) say(s outLine) {
	if !x.there || len(x.out) > maxLines {
		return
	}
	text, err := json.Marshal(&s)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	x.out = append(x.out, append(text, '\n'))
}

// Take returns the lines for the program, or ErrBehind if there are too many: then the
// program must be disconnected.
func (x *External) Take() ([][]byte, error) {
	list := x.out
	x.out = nil
	if len(list) > maxLines {
		return nil, ErrBehind
	}
	return list, nil
}

// Leave is called when the program has disconnected. Its decisions that Step has not
// returned are dropped.
func (x *External) Leave() {
	for _, d := range x.list {
		x.job(d.Job).Target = 0
	}
	x.there, x.line, x.out, x.list = false, 0, nil, nil
}

// Hear takes a line of the program. On an error the program must be disconnected. A
// decision that is not allowed is refused by a line.
func (x *External) Hear(line []byte) error {
	x.line++
	if len(line) > MaxLine {
		return fmt.Errorf("rm: line %d has %d bytes, at most %d allowed", x.line, len(line), MaxLine)
	}
	var h inLine
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&h)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("data after the object")
		}
	}
	if err != nil {
		return fmt.Errorf("rm: line %d: %w", x.line, err)
	}
	if x.line == 1 {
		return x.begin(&h)
	}
	if err := x.decide(&h); err != nil {
		x.say(outLine{Event: "refused", Line: x.line, Text: err.Error()})
	}
	return nil
}

// begin takes the first line, and answers it with the slots and jobs.
func (x *External) begin(h *inLine) error {
	switch {
	case h.Version != Protocol:
		return fmt.Errorf("rm: version %d, not %d", h.Version, Protocol)
	case subtle.ConstantTimeCompare([]byte(h.Secret), []byte(x.secret)) != 1:
		return errors.New("rm: another secret")
	}
	x.there = true
	x.say(outLine{Event: "hello", Version: Protocol, Head: x.name})
	x.tellSlots()
	for _, e := range x.jobs {
		x.tellJob(e)
	}
	return nil
}

func (x *External) tellSlots() {
	x.say(outLine{Event: "slots", Total: &x.slots.Total, Host: x.slots.Host})
}

func (x *External) tellJob(e *Entry) {
	x.say(outLine{Event: "arrived", Job: &e.ID, Size: &e.Size, Start: e.Start, Limit: e.Limit.Seconds(), Follows: e.Follows, COL: e.COL})
	if e.Wish != 0 {
		x.say(outLine{Event: "wished", Job: &e.ID, Size: &e.Wish, Min: e.WishMin})
	}
}

// decide records a decision.
func (x *External) decide(h *inLine) error {
	if h.Version != 0 || h.Secret != "" || h.Job == nil {
		return errors.New("a decision is {\"job\": 1, \"size\": 4}")
	}
	e := x.job(*h.Job)
	switch {
	case e == nil:
		return fmt.Errorf("there is no job %d", *h.Job)
	case e.Target != 0:
		return fmt.Errorf("a change of job %d to %d processes is under way", e.ID, e.Target)
	case h.Size < 1 || h.Size > MostProcesses:
		return fmt.Errorf("%d processes, 1 to %d allowed", h.Size, MostProcesses)
	case h.Size == e.Size:
		return fmt.Errorf("job %d has %d processes", e.ID, e.Size)
	}
	if h.Size > e.Size && x.slots.Total > 0 {
		used := h.Size
		for _, o := range x.jobs {
			if o != e {
				used += max(o.Size, o.Target)
			}
		}
		if used > x.slots.Total {
			return fmt.Errorf("%d of %d slots", used, x.slots.Total)
		}
	}
	e.Target = h.Size
	x.list = append(x.list, Decision{e.ID, h.Size, e.Size})
	return nil
}

func (x *External) job(id JobID) *Entry {
	if i := slices.IndexFunc(x.jobs, func(e *Entry) bool { return e.ID == id }); i >= 0 {
		return x.jobs[i]
	}
	return nil
}

// Step implements ResourceManager.
func (x *External) Step(now time.Duration, events ...Event) []Decision {
	for _, ev := range events {
		switch ev := ev.(type) {
		case Slots:
			x.slots = ev
			x.tellSlots()
		case Arrived:
			if x.job(ev.Job.ID) == nil {
				e := &Entry{Job: ev.Job, Asked: now}
				x.jobs = append(x.jobs, e)
				x.tellJob(e)
			}
		case Told:
			if e := x.job(ev.Job); e != nil {
				e.COL = ev.COL
				x.say(outLine{Event: "told", Job: &e.ID, COL: e.COL})
			}
		case Followed:
			if e := x.job(ev.Job); e != nil {
				e.Follows = ev.Follows
				x.say(outLine{Event: "followed", Job: &e.ID, Follows: ev.Follows})
			}
		case Wished:
			if e := x.job(ev.Job); e != nil {
				e.Wish, e.WishMin, e.Asked = ev.Size, ev.Min, now
				x.say(outLine{Event: "wished", Job: &e.ID, Size: &e.Wish, Min: e.WishMin})
			}
		case Sized:
			if e := x.job(ev.Job); e != nil {
				if ev.Size != e.Size || e.Target != 0 && !x.there { // otherwise alone would decide the same again
					e.Wish, e.WishMin = 0, 0
				}
				e.Size, e.Target = ev.Size, 0
				x.say(outLine{Event: "sized", Job: &e.ID, Size: &e.Size})
			}
		case Ended:
			if e := x.job(ev.Job); e != nil {
				x.jobs = slices.DeleteFunc(x.jobs, func(o *Entry) bool { return o == e })
				x.list = slices.DeleteFunc(x.list, func(d Decision) bool { return d.Job == e.ID })
				x.say(outLine{Event: "ended", Job: &e.ID})
			}
		}
	}
	if !x.there {
		return x.alone(now)
	}
	list := x.list
	x.list = nil
	return list
}

// alone decides while no program is connected.
func (x *External) alone(now time.Duration) []Decision {
	for _, e := range x.jobs {
		if e.Wish == e.Size {
			e.Wish, e.WishMin = 0, 0
		}
	}
	list := SlotsPolicy{}.Decide(&Table{Now: now, Slots: cmp.Or(x.slots.Total, math.MaxInt32), Host: x.slots.Host, Jobs: x.jobs})
	for _, d := range list {
		x.job(d.Job).Target = d.Size
	}
	return list
}

// Next implements ResourceManager.
func (*External) Next() (time.Duration, bool) { return 0, false }
