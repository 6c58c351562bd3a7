// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

const (
	// turnBlock is the time of a block, so short that the machine does not change.
	turnBlock = 400 * time.Microsecond
	// turnsLook is the number of rounds between searches for states.
	turnsLook = 20
)

// turns runs rounds in which blocks of several kinds take turns, so that all see the same
// machine.
type turns struct {
	rounds int
	// both is the longest time that rounds continue until seen reports both states of the
	// machine.
	both time.Duration
	seen func() bool
	// progress, if not nil, is called on rank 0 after every round of so many.
	progress func(done, total int)
	every    int
}

// run runs rounds until rank 0 ends them, as it does when ctx ends.
func (t *turns) run(ctx context.Context, world *mpi.Comm, round func() error) error {
	begin := time.Now()
	for k, more := 0, true; more; k++ {
		if err := round(); err != nil {
			return err
		}
		more = ctx.Err() == nil && (k+1 < t.rounds || t.both > time.Since(begin) && !(k%turnsLook == 0 && t.seen()))
		if t.progress != nil && world.Rank() == 0 && k%t.every == 0 {
			t.progress(min(k+1, t.rounds), t.rounds)
		}
		var err error
		if more, err = mpi.BcastOne(world, more, 0); err != nil {
			return err
		}
	}
	return nil
}

// block runs a loop between two probes; the second one is the first of the next block.
func (p *probe) block(l *loop, iterations int, before *float64) (report.Batch, error) {
	d, err := l.run(iterations)
	if err != nil {
		return report.Batch{}, err
	}
	after, err := p.nsec()
	if err != nil {
		return report.Batch{}, err
	}
	b := report.Batch{Usec: float64(d.Nanoseconds()) / 1e3 / float64(iterations) / float64(l.ops), Before: *before, After: after}
	*before = after
	return b, nil
}
