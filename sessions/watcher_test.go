// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gompi/internal/control/controltest"
	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// record is what the ranks of a job have seen of its changes.
type record struct {
	mu  sync.Mutex
	at  map[string]map[int]int // iterations at which a result was committed, by the ranks that say so
	out int                    // who left
}

func (r *record) committed(result string, iteration int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[string]map[int]int{}
	}
	if r.at[result] == nil {
		r.at[result] = map[int]int{}
	}
	r.at[result][iteration]++
}

// elastic is a loop whose ranks wait for each other's messages between Checks, and
// follow all changes of the main set. each is called in every iteration, before the
// messages, and returns true when the job is to end, on rank 0.
type elastic struct {
	record
	each func(t *mpitest.T, comm *mpi.Comm, i int) (end bool)
	// handed may do something before the commit.
	handed func(t *mpitest.T, comm *mpi.Comm, c *sessions.Change, i int)
}

// ring sends a word to the next rank and takes that of the one before.
func ring(comm *mpi.Comm, word []int64) error {
	if comm.Size() == 1 {
		return nil
	}
	n := comm.Size()
	in := make([]int64, len(word))
	if _, err := mpi.Sendrecv(comm, word, (comm.Rank()+1)%n, 3, in, (comm.Rank()+n-1)%n, 3); err != nil {
		return err
	}
	if in[0] != word[0] {
		return fmt.Errorf("iteration %d meets iteration %d", word[0], in[0])
	}
	word[1] = max(word[1], in[1])
	return nil
}

// begin is how a newcomer begins; others get what they give.
func (e *elastic) begin(ctx context.Context, comm *mpi.Comm) (*mpi.Comm, int, error) {
	c, err := sessions.Joined(ctx)
	if c == nil || err != nil {
		return comm, 0, err
	}
	if c.Role != sessions.Joining || c.Result == "" {
		return nil, 0, fmt.Errorf("joined by %+v", c)
	}
	if comm, err = c.Commit(ctx); err != nil {
		return nil, 0, err
	}
	i, err := c.Iteration(ctx)
	e.committed(c.Result, i)
	return comm, i + 1, err
}

func (e *elastic) run(t *mpitest.T, world *mpi.Comm) {
	ctx := t.Context()
	comm, i, err := e.begin(ctx, world)
	if err != nil {
		t.Fatal(err)
	}
	e.follow(t, comm, "gompi://main", i)
}

// follow is the loop over a communicator of a set.
func (e *elastic) follow(t *mpitest.T, comm *mpi.Comm, set string, i int) {
	ctx := t.Context()
	w, err := sessions.Watch(ctx, set, sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	end := int64(0) // iteration in which all end
	for ; end == 0 || int64(i) < end; i++ {
		c, err := w.Check(i)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			if e.handed != nil {
				e.handed(t, comm, c, i)
			}
			next, err := c.Commit(ctx)
			switch {
			case errors.Is(err, sessions.ErrLeaving):
				if c.Role != sessions.Leaving {
					t.Errorf("a rank that is %v: %v", c.Role, err)
				}
				e.mu.Lock()
				e.out++
				e.mu.Unlock()
				return
			case errors.Is(err, sessions.ErrRolledBack):
				c = nil // as those who were not handed it
			case err != nil:
				t.Fatal(err)
			}
			if c != nil {
				if n, err := c.Iteration(ctx); n != i || err != nil {
					t.Errorf("iteration %d, %v of a change that was handed out in %d", n, err, i)
				}
				e.committed(c.Result, i)
				comm = next
				continue
			}
		}
		if e.each(t, comm, i) && comm.Rank() == 0 && end == 0 {
			end = int64(i + comm.Size() + 1)
		}
		word := []int64{int64(i), end}
		if err := ring(comm, word); err != nil {
			t.Fatal(err)
		}
		end = word[1]
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// check compares what all ranks have seen: each change at one iteration.
func (e *elastic) check(t *testing.T, results map[string]int) {
	t.Helper()
	if len(e.at) != len(results) {
		t.Errorf("%d results were committed, %d were asked for", len(e.at), len(results))
	}
	for result, at := range e.at {
		for i, n := range at {
			if len(at) != 1 || n != results[result] {
				t.Errorf("%s, of %d ranks: %d of them in iteration %d, %v", result, results[result], n, i, at)
			}
		}
	}
}

func transports(t *testing.T, f func(t *testing.T, transport string)) {
	for _, name := range []string{"inproc", "shm", onHosts} {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// onHosts is no transport: ranks are on pretended hosts of two slots each.
const onHosts = "hosts"

// over are the options of a job over such a transport.
func over(transport string) []mpitest.Option {
	if transport == onHosts {
		return []mpitest.Option{testjob.Hosts(3, 2), mpitest.Transport("shm,tcp")}
	}
	return []mpitest.Option{mpitest.Transport(transport)}
}

// nothingLeft checks that goroutines and descriptors end with the job that is begun
// after this.
func nothingLeft(t *testing.T) {
	before := controltest.Leftovers()
	t.Cleanup(func() {
		controltest.WaitFor(t, fmt.Sprintf("nothing left beyond %+v", before), func() bool { return controltest.Leftovers().Within(before) })
	})
}

// TestChanges: ranks that wait for each other's messages come and go, and all are
// handed each change in the same iteration.
func TestChanges(t *testing.T) { comeAndGo(t, 20, 1) }

// TestSoakChanges is the same for longer.
func TestSoakChanges(t *testing.T) {
	changes := testlab.Rounds(170, 10_000) // on each of three
	comeAndGo(t, changes, testlab.Seed(t))
}

// changing is one set, whose first rank asks for one change after the other and stays.
type changing struct {
	elastic
	changes int // in all
	rng     *rand.Rand

	// Of the first rank.
	set                 string // its name now
	op                  *sessions.Operation
	size, done, leavers int
	results             map[string]int // how many each was to have
}

func newChanging(changes int, seed uint64) *changing {
	c := &changing{changes: changes, rng: rand.New(rand.NewPCG(seed, 2)), set: "gompi://main", results: map[string]int{}}
	c.each = c.ask
	return c
}

// ask submits a change when the last one has happened.
func (c *changing) ask(t *mpitest.T, comm *mpi.Comm, i int) bool {
	if comm.Rank() != 0 {
		return false
	}
	if c.op != nil && c.op.State() >= sessions.Committed {
		x, err := c.op.Decided(t.Context())
		if err != nil || x.Err != nil {
			t.Error(err, x.Err)
		}
		c.results[x.Outputs[0].Result] = c.size
		if c.set != "gompi://main" {
			c.set = x.Outputs[0].Result
		}
		c.op.Free()
		c.op = nil
		c.done++
	}
	if c.op != nil || c.done == c.changes {
		return c.op == nil
	}
	n := 1 + c.rng.IntN(2)
	c.size = comm.Size() + n
	r := sessions.Request{Kind: sessions.Grow, In: []string{c.set}, Add: []int{n}}
	if comm.Size() > 3 {
		c.leavers += n
		c.size = comm.Size() - n
		r.Kind, r.Add, r.Sub = sessions.Shrink, nil, n
		if n == 1 {
			r.Sub, r.Ranks = 0, []int{1 + c.rng.IntN(comm.Size()-1)}
		}
	}
	var err error
	if c.op, err = sessions.Submit(t.Context(), r); err != nil {
		t.Error(err)
	}
	return false
}

// over compares what was asked for with what has come of it.
func (c *changing) over(t *testing.T) {
	t.Helper()
	if c.check(t, c.results); c.out != c.leavers {
		t.Errorf("%d ranks have left, %d should", c.out, c.leavers)
	}
}

const longest = 30 * time.Minute // of a run of the long form, on a machine that is busy

func comeAndGo(t *testing.T, changes int, seed uint64) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		began := time.Now()
		c := newChanging(changes, seed)
		mpitest.Run(t, 3, c.run, append(over(transport), mpitest.Within(longest))...)
		c.over(t)
		t.Logf("%d changes in %v", c.done, time.Since(began).Round(time.Second))
	})
}

// TestSoakTwoSets: two sets of one job change at the same time, and each of them as if
// it were alone.
func TestSoakTwoSets(t *testing.T) {
	changes := testlab.Rounds(17, 1000) // of each set, on each of three
	seed := testlab.Seed(t)
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		began := time.Now()
		sides := []*changing{newChanging(changes, seed), newChanging(changes, seed+1)}
		var mu sync.Mutex
		of := map[string]*changing{} // by the name of a set
		newcomer := func(c *sessions.Change) *changing {
			mu.Lock()
			defer mu.Unlock()
			of[c.Result] = of[c.Input]
			return of[c.Input]
		}
		for _, side := range sides {
			side.handed = func(t *mpitest.T, comm *mpi.Comm, c *sessions.Change, i int) { newcomer(c) }
		}
		mpitest.Run(t, 6, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			c, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				side := newcomer(c)
				comm, i, err := side.begin(ctx, world)
				if err != nil {
					t.Fatal(err)
				}
				side.follow(t, comm, c.Result, i)
				return
			}
			s, err := sessions.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			if len(of) == 0 {
				names, err := s.Split("mpi://WORLD", []int{3, 3})
				if err != nil {
					t.Fatal(err)
				}
				for k, side := range sides {
					side.set = names[k]
					of[names[k]] = side
				}
			}
			mu.Unlock()
			side := sides[world.Rank()/3]
			comm, err := world.Split(world.Rank()/3, 0)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			set := side.set
			mu.Unlock()
			side.follow(t, comm, set, 0)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}, append(over(transport), mpitest.Within(longest))...)
		for _, side := range sides {
			side.over(t)
		}
		t.Logf("%d changes of each set in %v", changes, time.Since(began).Round(time.Second))
	})
}
