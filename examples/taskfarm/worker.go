// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// What master and worker say to each other.
const (
	tagWord = 1 // worker to master: word
	tagTask = 2 // the answer, if one is wanted: task
)

// word is what a worker says: the best of its last task, and whether it goes on with a
// change now; if not, it wants an answer.
type word struct {
	Best   sequence
	Change bool
}

// task is an interval of numbers. An empty one is none: the worker is to look whether
// there is a change, or, Over, to end.
type task struct {
	First, End int64
	Over       bool
}

// sequence is where a Collatz sequence begins and how many steps it takes to 1.
type sequence struct{ Start, Steps int64 }

// work does tasks until there are no more.
func (f *farm) work(ctx context.Context) error {
	var said word
	for {
		// The numbers of tasks cannot be compared between workers: each is handed a
		// change when it comes by.
		c, err := f.watch.Check(sessions.Now)
		if err != nil {
			return err
		}
		said.Change = c != nil
		if err := mpi.SendOne(f.comm, said, 0, tagWord); err != nil {
			return err
		}
		said = word{}
		if c != nil {
			if _, err := f.adopt(ctx, c); err != nil {
				return err
			}
			continue
		}
		t, _, err := mpi.RecvOne[task](f.comm, 0, tagTask)
		if err != nil || t.Over {
			return err
		}
		said.Best = f.do(t)
	}
}

// do does a task.
func (f *farm) do(t task) sequence {
	var best sequence
	for n := t.First; n < t.End; n++ {
		best = longer(best, sequence{n, collatz(n)})
	}
	if t.First < t.End {
		time.Sleep(f.pause)
	}
	return best
}

// longer is the longer of two sequences; of equal ones that with the smaller beginning.
func longer(a, b sequence) sequence {
	if b.Steps > a.Steps || b.Steps == a.Steps && b.Start < a.Start {
		return b
	}
	return a
}

// collatz is how many steps lead from n to 1. The numbers on the way are below 2^64 for
// all n below 2^33.
func collatz(n int64) (steps int64) {
	for u := uint64(n); u != 1; steps++ {
		if u%2 == 0 {
			u /= 2
		} else {
			u = 3*u + 1
		}
	}
	return steps
}
