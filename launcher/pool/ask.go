// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Queue is the state of a head and its jobs.
type Queue struct {
	Name         string
	Manager      string // name of the resource manager
	Total, Taken int    // slots; Taken includes promised ones
	Jobs         []Entry
}

// Entry is a job of a Queue, in order of arrival.
type Entry struct {
	Job     string // its number in gompictl while it runs
	Program string
	PID     int           // of its gompirun
	Start   int           // number of processes it asked to begin with
	Has     int           // slots; 0: it waits
	Wants   int           // slots it asks for; equal to Has: it does not ask
	Target  int           // size after the change under way; 0: there is none
	Follows bool          // it can be resized
	For     time.Duration // how long it has run, or waited
}

// askWait is the time limit for a head's answer.
const askWait = 5 * time.Second

// Ask asks a head of this user and host for its queue.
func Ask(name string) (*Queue, error) {
	c, err := dial(name)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(askWait))
	if _, err := c.Write((&line{Version: Version, Ask: "queue"}).encode()); err != nil {
		return nil, fmt.Errorf("head %s: %w", name, err)
	}
	q := &Queue{Name: name}
	in := scan(c)
	for in.Scan() {
		if err := mismatch(in.Bytes(), "it", "this gompictl"); err != nil {
			return nil, fmt.Errorf("head %s: %w", name, err)
		}
		l, err := decode(in.Bytes())
		switch {
		case err != nil:
			return nil, err
		case l.Event == "end":
			return q, nil
		case l.Event == "refused":
			return nil, fmt.Errorf("head %s: %s", name, l.Text)
		}
		q.take(l)
	}
	return nil, fmt.Errorf("head %s: %w", name, errors.Join(in.Err(), io.ErrUnexpectedEOF))
}

// take adds a line of the answer.
func (q *Queue) take(l *line) {
	switch l.Event {
	case "head":
		q.Manager, q.Total, q.Taken = l.Text, l.Total, l.Taken
	case "job":
		q.Jobs = append(q.Jobs, Entry{Job: l.Job, Program: l.Program, PID: l.PID, Start: l.Start, Has: l.Taken, Wants: l.Size, Target: l.Target,
			Follows: l.Follows, For: time.Duration(l.For * float64(time.Second))})
	}
}
