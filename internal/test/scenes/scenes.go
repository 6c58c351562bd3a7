// SPDX-License-Identifier: Apache-2.0

// Package scenes runs small programs of several ranks. A Scene is such a program; Run runs it
// in each way in which ranks can exist: as goroutines of a test on one host, as goroutines on
// several pretended hosts, and as processes under gompirun.
package scenes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gompi/internal/control/controltest"
	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// Scene is a program of some ranks, and of the ranks that these start.
type Scene struct {
	Name  string
	Ranks int
	Run   func(ctx context.Context, world *mpi.Comm) error
	// Dies is the number of ranks that call Die. All others come to their end.
	Dies int
	// Declines says that newcomers which report the rollback of their change end there, as with
	// mpi.Main. Otherwise the goroutines of a test end together.
	Declines bool
}

// dieKey is the key of the function that kills the calling rank, in the context of a scene.
type dieKey struct{}

// Die kills the calling rank of a scene.
func Die(ctx context.Context) { ctx.Value(dieKey{}).(func())() }

// killed ends this process as a crash would.
func killed() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// survived is what a process prints after a scene in which others have died. The exit status of
// gompirun reports only those deaths.
const survived = "survived"

// Main is for TestMain. It runs the tests, or a scene in a process that one of the tests has
// started.
func Main(m *testing.M, list []Scene) {
	if len(os.Args) > 2 && os.Args[1] == "rank" {
		s := list[slices.IndexFunc(list, func(s Scene) bool { return s.Name == os.Args[2] })]
		mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
			err := s.Run(context.WithValue(ctx, dieKey{}, killed), world)
			if err == nil && s.Dies > 0 {
				fmt.Println(survived)
			}
			return err
		})
		return
	}
	code := m.Run()
	mpitest.RemoveBuilt()
	os.Exit(code)
}

// Run runs each scene in each way. In the short form each scene runs in one process, and the
// scenes of a list take turns in the other two ways.
func Run(t *testing.T, list []Scene) {
	for i, s := range list {
		for k, way := range []struct {
			name string
			run  func(t *testing.T)
		}{
			{"inproc", func(t *testing.T) { s.Goroutines(t, []mpitest.Option{mpitest.Transport("inproc")}) }},
			{"hosts", func(t *testing.T) {
				s.Goroutines(t, []mpitest.Option{testjob.Hosts(3, 2), mpitest.Transport("shm,tcp")})
			}},
			{"processes", s.processes},
		} {
			if k == 0 || testlab.Takes(i+k, 2) {
				t.Run(s.Name+"/"+way.name, way.run)
			}
		}
	}
}

// Goroutines runs the scene with goroutines as ranks, and checks that nothing of them is left.
func (s *Scene) Goroutines(t *testing.T, opts []mpitest.Option) {
	before := controltest.Leftovers()
	t.Cleanup(func() {
		controltest.WaitFor(t, fmt.Sprintf("nothing left beyond %+v", before), func() bool { return controltest.Leftovers().Within(before) })
	})
	mpitest.Run(t, s.Ranks, func(t *mpitest.T, world *mpi.Comm) {
		err := s.Run(context.WithValue(t.Context(), dieKey{}, func() { t.Kill(-1) }), world)
		if s.Declines && world.Process().Core().Process().Discards(err) {
			t.Kill(-1)
		}
		if err != nil && !errors.Is(err, mpi.ErrLeaving) && !errors.Is(err, mpi.ErrRolledBack) {
			t.Fatal(err)
		}
	}, opts...)
}

// processes runs the scene under gompirun.
func (s *Scene) processes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var opts []mpitest.ExecOption
	if s.Dies > 0 {
		opts = append(opts, mpitest.Flags("--ft"))
	}
	r := mpitest.Exec(t, s.Ranks, []string{self, "rank", s.Name}, opts...)
	ok := r.Status == 0 && r.Stderr == ""
	if s.Dies > 0 {
		ok = strings.Count(r.Stdout, survived+"\n") == s.Ranks-s.Dies
	}
	if !ok {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}
