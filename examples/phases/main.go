// SPDX-License-Identifier: Apache-2.0

// Command phases counts primes with as many processes as each part of the work can
// use, and asks for them itself: the first sieves what all need, many count, few check
// the result in another way.
//
//	gompirun -np 1 phases --count 4 --check 2
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
	"gompi/sessions"
)

func main() {
	limit := pflag.Int64("limit", 20_000_000, "count the primes up to this number")
	count := pflag.Int("count", 4, "processes that count")
	check := pflag.Int("check", 2, "processes that check")
	options.Parse()
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		if *limit < 10 || *limit > 1e12 || *count < 1 || *check < 1 {
			return fmt.Errorf("--limit %d, --count %d, --check %d: 10 to 1e12, and at least 1", *limit, *count, *check)
		}
		j := &job{comm: world, limit: *limit}
		return j.run(ctx, *count, *check)
	})
}

// job is what a rank knows of the work.
type job struct {
	comm  *mpi.Comm // of those who take part just now
	watch *sessions.Watcher
	limit int64

	phase  int
	look   int     // how often all have looked for a change
	primes []int64 // up to the root of limit
	found  int64
}

// run does the phases that are still to come: a process that is started for one joins
// those that do it.
func (j *job) run(ctx context.Context, count, check int) error {
	c, err := sessions.Joined(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		if err := j.adopt(ctx, c); err != nil {
			return err
		}
	}
	if j.watch, err = sessions.Watch(ctx, "gompi://main", sessions.Options{}); err != nil {
		return err
	}
	defer j.watch.Close()
	phases := []struct {
		name  string
		ranks int // 0: as many as there are
		do    func() error
	}{{"set-up", 0, j.sieve}, {"count", count, j.count}, {"check", check, j.check}}
	for ; j.phase < len(phases); j.phase++ {
		p := phases[j.phase]
		if j.comm.Size() != p.ranks && p.ranks > 0 {
			if err := j.resize(ctx, p.ranks); err != nil {
				return err
			}
		}
		begin := time.Now()
		if err := p.do(); err != nil {
			return err
		}
		if j.comm.Rank() == 0 {
			fmt.Printf("%s by %d ranks in %v\n", p.name, j.comm.Size(), time.Since(begin).Round(time.Microsecond))
		}
	}
	if j.comm.Rank() == 0 {
		fmt.Printf("%d primes up to %d\n", j.found, j.limit)
	}
	return j.comm.Free()
}

// resize has the job go on with so many ranks, or with those that there are if that
// cannot be had.
func (j *job) resize(ctx context.Context, ranks int) error {
	var op *sessions.Operation
	if j.comm.Rank() == 0 {
		var err error
		op, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}, Size: ranks})
		if err != nil {
			fmt.Println(err)
		} else {
			defer op.Free()
		}
	}
	for {
		// Nobody has anything to do before the change, so all can wait for each other.
		// A loop that computes goes on instead, see examples/elastic.
		off, err := mpi.BcastOne(j.comm, j.comm.Rank() == 0 && (op == nil || failed(op.State())), 0)
		if err != nil || off {
			return err
		}
		// All wait for each other above, so all must be handed the change by the same look.
		j.look++
		c, err := j.watch.Check(j.look)
		if err != nil {
			return err
		}
		if c == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		err = j.adopt(ctx, c)
		if !errors.Is(err, sessions.ErrRolledBack) {
			return err
		}
		// A newcomer has died. The others that came with it never saw the change.
	}
}

// failed reports whether a change will not come.
func failed(s sessions.State) bool { return s >= sessions.Refused }

// adopt makes the change on this rank, and tells newcomers what they need.
func (j *job) adopt(ctx context.Context, c *sessions.Change) error {
	comm, err := c.Commit(ctx)
	if err != nil {
		return err // for a leaver ErrLeaving, which mpi.Main takes as the good end that it is
	}
	if c.Role != sessions.Joining {
		if err := j.comm.Free(); err != nil {
			return err
		}
	}
	j.comm = comm
	state := [3]int64{int64(j.phase), int64(len(j.primes)), j.found}
	if state, err = mpi.BcastOne(comm, state, 0); err != nil {
		return err
	}
	if c.Role == sessions.Joining {
		j.phase, j.primes, j.found = int(state[0]), make([]int64, state[1]), state[2]
		if j.look, err = c.Iteration(ctx); err != nil {
			return err
		}
	}
	return mpi.Bcast(comm, j.primes, 0)
}
