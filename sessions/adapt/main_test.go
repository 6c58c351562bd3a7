// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gompi/internal/control/controltest"
	"gompi/internal/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "rank" {
		i := slices.IndexFunc(scenes, func(s scene) bool { return s.name == os.Args[2] })
		mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
			err := scenes[i].run(context.WithValue(ctx, killKey{}, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }), world)
			if err == nil && scenes[i].dies {
				fmt.Println("adapted") // the status tells of who has died
			}
			return err
		})
		return
	}
	code := m.Run()
	mpitest.RemoveBuilt()
	os.Exit(code)
}

// killKey is the key of what kills the calling rank, in the context of a scene.
type killKey struct{}

// scene is a program of so many ranks, and of those that it starts.
type scene struct {
	name  string
	ranks int
	run   func(ctx context.Context, world *mpi.Comm) error
	dies  bool // one of the ranks
}

// Each scene by ranks that are goroutines, on one host and on several, and by
// processes.
func TestScenes(t *testing.T) {
	for _, s := range scenes {
		for _, over := range []struct {
			name string
			opts []mpitest.Option
		}{
			{"inproc", []mpitest.Option{mpitest.Transport("inproc")}},
			{"hosts", []mpitest.Option{testjob.Hosts(3, 2), mpitest.Transport("shm,tcp")}},
		} {
			t.Run(s.name+"/"+over.name, func(t *testing.T) {
				before := controltest.Leftovers()
				t.Cleanup(func() {
					controltest.WaitFor(t, fmt.Sprintf("nothing left beyond %+v", before), func() bool { return controltest.Leftovers().Within(before) })
				})
				mpitest.Run(t, s.ranks, func(t *mpitest.T, world *mpi.Comm) {
					if err := s.run(context.WithValue(t.Context(), killKey{}, func() { t.Kill(-1) }), world); err != nil && !errors.Is(err, mpi.ErrLeaving) && !errors.Is(err, mpi.ErrRolledBack) {
						t.Fatal(err)
					}
				}, over.opts...)
			})
		}
		t.Run(s.name+"/processes", func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			var opts []mpitest.ExecOption
			if s.dies {
				opts = append(opts, mpitest.Flags("--ft"))
			}
			r := mpitest.Exec(t, s.ranks, []string{self, "rank", s.name}, opts...)
			if !s.dies && (r.Status != 0 || r.Stderr != "") || s.dies && strings.Count(r.Stdout, "adapted\n") != s.ranks-1 {
				t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}
