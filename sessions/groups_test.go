// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// Newcomers that start in groups are one a host, in the world and the set of all of them
// or in those of their host, and come as others do; a host's set leaves by itself.
func TestGroupsOfNewcomers(t *testing.T) {
	for _, start := range []sessions.Start{sessions.StartAll, sessions.StartSequential, sessions.StartMultiple, sessions.StartParallel} {
		t.Run(start.String(), func(t *testing.T) {
			grouped := start == sessions.StartMultiple || start == sessions.StartParallel
			sets, world := 1, 6
			if grouped {
				sets, world = 3, 2
			}
			var mu sync.Mutex
			seen := map[string]int{}
			mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				ctx := t.Context()
				if c, err := sessions.Joined(ctx); err != nil {
					t.Fatal(err)
				} else if c != nil {
					here, err := w.SplitType(mpi.SplitShared, 0, nil)
					if err != nil {
						t.Fatal(err)
					}
					if w.Size() != world || here.Size() != 2 || len(c.Joining) != sets {
						t.Errorf("a world of %d of which %d are on its host, %d sets of newcomers", w.Size(), here.Size(), len(c.Joining))
					}
				}
				var joining []string
				sizes := resizingLoop(t, w, 6, func(t *mpitest.T, size int) {
					r := sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{6}, Start: start}
					if size == 8 {
						r = sessions.Request{Kind: sessions.Shrink, In: toMain, Sub: 2}
						if grouped { // those in the middle
							r.Sub, r.Ranks = 0, ranksOf(t, joining[1])
						}
					}
					op, err := sessions.Submit(ctx, r)
					if err != nil {
						t.Fatal(err)
					}
					defer op.Free()
					out, err := op.Granted(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if size == 2 {
						joining = out[0].Joining
					}
				})
				mu.Lock()
				defer mu.Unlock()
				seen[fmt.Sprint(sizes)]++
			}, testjob.Hosts(4, 2), mpitest.Transport("shm,tcp"))
			if want := map[string]int{"[2 8 6]": 2, "[8 6]": 4, "[8]": 2}; fmt.Sprint(seen) != fmt.Sprint(want) {
				t.Errorf("%v, want %v", seen, want)
			}
		})
	}
}

// ranksOf are the ranks that the members of a set have in the main set.
func ranksOf(t *mpitest.T, name string) (ranks []int) {
	t.Helper()
	s := open(t)
	defer s.Close()
	main, err := s.Group("gompi://main")
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.Group(name)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, set.Size())
	for i := range all {
		all[i] = i
	}
	if ranks, err = set.Translate(all, main); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(ranks, mpi.Undefined) {
		t.Fatalf("%s has ranks %v in the main set", name, ranks)
	}
	return ranks
}

// Newcomers are spread over the hosts, or fill them one after the other.
func TestPlacement(t *testing.T) {
	for place, want := range map[sessions.Place]string{sessions.PlaceCompact: "[1 3 1]", sessions.PlaceSpread: "[1 2 2]"} {
		t.Run(place.String(), func(t *testing.T) {
			mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
				ctx := t.Context()
				c, err := sessions.Joined(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if c == nil {
					watch, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
					if err != nil {
						t.Fatal(err)
					}
					op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{4}, Hosts: []string{"host-1", "host-2"}, Place: place})
					if err != nil {
						t.Fatal(err)
					}
					defer op.Free()
					for c == nil {
						if c, err = watch.Check(sessions.Now); err != nil {
							t.Fatal(err)
						}
					}
				}
				comm, here := committed(t, c)
				// One of each host says how many they are.
				mine := 0
				if here.Rank() == 0 {
					mine = here.Size()
				}
				all := make([]int, comm.Size())
				if err := mpi.Allgather(comm, []int{mine}, all); err != nil {
					t.Fatal(err)
				}
				if all = slices.DeleteFunc(all, func(n int) bool { return n == 0 }); fmt.Sprint(all) != want {
					t.Errorf("%v on the hosts, want %v", all, want)
				}
			}, testjob.Hosts(3, 3), mpitest.Transport("shm,tcp"))
		})
	}
}
