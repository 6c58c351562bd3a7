// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// Where there are no slots for all newcomers, a request with bounds gets as many as
// there are slots for: of the job, or with strict slots of the hosts that it names.
func TestBounds(t *testing.T) {
	slots := []mpitest.Option{testjob.Slots(5, false)}
	strict := []mpitest.Option{testjob.Hosts(3, 2), testjob.Slots(6, true), mpitest.Transport("tcp")}
	for what, c := range map[string]struct {
		r    sessions.Request
		want int // processes in the end; 0: refused
		opts []mpitest.Option
	}{
		"grow":      {sessions.Request{Kind: sessions.Grow, Add: []int{6}, Min: 3}, 5, slots},
		"replace":   {sessions.Request{Kind: sessions.Replace, Size: 8, Min: 3, Max: 8, Pref: 4}, 4, slots},
		"sizes":     {sessions.Request{Kind: sessions.Grow, Add: []int{6}, Sizes: []int{2, 4, 8}}, 4, slots},
		"too few":   {sessions.Request{Kind: sessions.Grow, Add: []int{6}, Min: 6}, 0, slots},
		"unbounded": {sessions.Request{Kind: sessions.Grow, Add: []int{6}}, 0, slots},
		"one host":  {sessions.Request{Kind: sessions.Grow, Add: []int{6}, Min: 3, Hosts: []string{"host-1"}}, 4, strict},
		"two hosts": {sessions.Request{Kind: sessions.Replace, Size: 7, Min: 3}, 6, strict},
		"few slots": {sessions.Request{Kind: sessions.Grow, Add: []int{6}, Min: 5, Hosts: []string{"host-1"}}, 0, strict},
	} {
		t.Run(what, func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
				ctx := t.Context()
				change, err := sessions.Joined(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if change == nil {
					w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer w.Close()
					if err := world.Barrier(); err != nil {
						t.Fatal(err)
					}
					if world.Rank() == 0 {
						r := c.r
						r.In = toMain
						op, err := sessions.Submit(ctx, r)
						if c.want == 0 {
							var refused *sessions.RefusedError
							if !errors.As(err, &refused) {
								t.Errorf("%v", err)
							}
						} else if err != nil {
							t.Fatal(err)
						} else {
							defer op.Free()
						}
					}
					if c.want == 0 {
						return
					}
					for change == nil {
						if change, err = w.Check(sessions.Now); err != nil {
							t.Fatal(err)
						}
					}
				}
				comm, err := change.Commit(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if comm.Size() != c.want {
					t.Errorf("%d processes, want %d", comm.Size(), c.want)
				}
			}, c.opts...)
		})
	}
}
