// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"strings"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// Newcomers start on the hosts that the request names, also beyond their slots.
func TestNewcomersOnHosts(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		c, err := sessions.Joined(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
			if world.Rank() == 0 {
				r := sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1}, Hosts: []string{"host-2", "elsewhere"}}
				var refused *sessions.RefusedError
				if _, err := sessions.Submit(ctx, r); !errors.As(err, &refused) || !strings.Contains(refused.Text, `"elsewhere"`) {
					t.Errorf("a host that there is not: %v", err)
				}
				r.Hosts, r.Add = []string{"host-2"}, []int{3}
				op, err := sessions.Submit(ctx, r)
				if err != nil {
					t.Fatal(err)
				}
				defer op.Free()
			}
			for c == nil {
				if c, err = w.Check(sessions.Now); err != nil {
					t.Fatal(err)
				}
			}
		}
		comm, here := committed(t, c)
		want := 2
		if c.Role == sessions.Joining {
			want = 3
		}
		if here.Size() != want {
			t.Errorf("rank %d shares its host with %d, want %d", comm.Rank(), here.Size(), want)
		}
	}, testjob.Hosts(3, 2), mpitest.Transport("shm,tcp"))
}

// committed takes up a change: all of its result, and those of them on this host.
func committed(t *mpitest.T, c *sessions.Change) (comm, here *mpi.Comm) {
	t.Helper()
	comm, err := c.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if here, err = comm.SplitType(mpi.SplitShared, 0, nil); err != nil {
		t.Fatal(err)
	}
	return comm, here
}
