// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// master hands out the tasks, and does them itself while there is no worker.
type master struct {
	*farm
	next  int64 // the first number that nobody was given
	tasks int   // that are done
	best  sequence

	least, most int // ranks that there were

	idle []int        // workers that wait for an answer
	away map[int]bool // those that go on with a change
}

func newMaster(f *farm) *master {
	n := f.comm.Size()
	if name := os.Getenv("GOMPI_JOB"); name != "" {
		fmt.Printf("try: gompictl resize %s +2\n", name)
	}
	return &master{farm: f, next: 1, least: n, most: n, away: map[int]bool{}}
}

func (m *master) run(ctx context.Context) error {
	for {
		c, err := m.watch.Check(sessions.Now)
		if err != nil {
			return err
		}
		workers := m.comm.Size() - 1
		for c != nil && len(m.away) < workers {
			// A worker that waits for an answer must look for the change, and goes on with it then.
			if err := m.answer(task{}); err != nil {
				return err
			}
			if err := m.listen(); err != nil {
				return err
			}
		}
		switch {
		case c != nil:
			err = m.change(ctx, c)
		case m.next < m.limit && workers == 0:
			m.took(m.do(m.cut()))
		case m.next < m.limit && len(m.idle) > 0:
			w := m.idle[0]
			m.idle = m.idle[1:]
			err = mpi.SendOne(m.comm, m.cut(), w, tagTask)
		case m.next >= m.limit && len(m.idle) == workers:
			return m.end()
		default:
			err = m.listen()
		}
		if err != nil {
			return err
		}
	}
}

// cut is the next task.
func (m *master) cut() task {
	t := task{First: m.next, End: min(m.next+m.size, m.limit)}
	m.next = t.End
	return t
}

// took counts what came of a task.
func (m *master) took(best sequence) {
	m.best = longer(m.best, best)
	m.tasks++
}

// listen takes the next word of a worker. While some go on with a change of which the
// master has not heard it does not wait for one: there may be none before the master is
// with them.
func (m *master) listen() error {
	if len(m.away) > 0 {
		if found, _, err := m.comm.Iprobe(mpi.AnySource, tagWord); err != nil || !found {
			time.Sleep(100 * time.Microsecond)
			return err
		}
	}
	w, st, err := mpi.RecvOne[word](m.comm, mpi.AnySource, tagWord)
	if err != nil {
		return err
	}
	if w.Best.Start > 0 {
		m.took(w.Best)
	}
	if w.Change {
		m.away[st.Source] = true
	} else {
		delete(m.away, st.Source) // the change was rolled back
		m.idle = append(m.idle, st.Source)
	}
	return nil
}

// answer says the same to all who wait for an answer.
func (m *master) answer(t task) error {
	for _, w := range m.idle {
		if err := mpi.SendOne(m.comm, t, w, tagTask); err != nil {
			return err
		}
	}
	m.idle = nil
	return nil
}

// change goes on with a change: all workers do.
func (m *master) change(ctx context.Context, c *sessions.Change) error {
	before := m.comm.Size()
	clear(m.away)
	adopted, err := m.adopt(ctx, c)
	if err != nil || !adopted {
		return err
	}
	n := m.comm.Size()
	m.least, m.most = min(m.least, n), max(m.most, n)
	_, err = fmt.Printf("%d tasks done, %d ranks, %d before\n", m.tasks, n, before)
	return err
}

// end sends all workers home.
func (m *master) end() error {
	if err := m.answer(task{Over: true}); err != nil {
		return err
	}
	_, err := fmt.Printf("below %d the longest sequence begins with %d: %d steps; %d tasks by %d to %d ranks\n",
		m.limit, m.best.Start, m.best.Steps, m.tasks, m.least, m.most)
	return err
}
