// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpi"
	"gompi/mpitest"
)

// neighborRank meets the other program at the port that is told in a file: args are the
// file, the side ("0": it opens the port), who comes late ("joins": others than rank 0, of
// both sides, join when that has met), and what is killed when both
// have met ("rank 1", "head 0": of which side).
func neighborRank(w *mpi.Comm, args []string) error {
	file, side, late, victim := args[0], args[1], args[2], args[3]
	port, meet := "", w.Connect
	if side == "0" {
		meet = w.Accept
	}
	switch {
	case w.Rank() > 0:
	case side == "0":
		var err error
		if port, err = w.Process().OpenPort(); err == nil {
			err = os.WriteFile(file+".new", []byte(port), 0o600)
		}
		if err = errors.Join(err, os.Rename(file+".new", file)); err != nil {
			return err
		}
		if late == side {
			<-time.After(20 * time.Millisecond)
		}
	default:
		for port == "" {
			b, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if port = string(b); port == "" || late == side {
				<-time.After(20 * time.Millisecond)
			}
		}
	}
	d, err := meet(port, 0)
	if err != nil {
		return err
	}
	if victim == "" {
		return greet(d)
	}
	what, of, _ := strings.Cut(victim, " ")
	kills := 0 // this rank, when all others know that all have met
	if what == "rank" {
		kills = 1
	}
	switch {
	case of != side:
		if err := mpi.Send(d, []int{1}, kills, 0); err != nil {
			return err
		}
		for rank := range d.RemoteSize() {
			if _, err := mpi.Recv(d, make([]int, 1), rank, 0); !errors.Is(err, mpi.ErrProcFailed) {
				return fmt.Errorf("of rank %d of the other job: %w", rank, err)
			}
		}
		if n, err := mpi.AllreduceOne(w, 1, mpi.Sum); err != nil || n != w.Size() {
			return fmt.Errorf("the job itself: %d, %w", n, err)
		}
		return d.Free()
	case w.Rank() == kills:
		for rank := range d.RemoteSize() {
			if _, err := mpi.Recv(d, make([]int, 1), rank, 0); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(w, make([]int, 1), 1-kills, 0); err != nil {
			return err
		}
		if what == "head" {
			return unix.Kill(os.Getppid(), unix.SIGKILL)
		}
		return unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	if err := mpi.Send(w, []int{1}, kills, 0); err != nil {
		return err
	}
	_, err = mpi.Recv(w, make([]int, 1), kills, 1) // the job ends meanwhile
	return err
}

// Two programs, each with a gompirun of its own, meet at a port, whichever comes first. If
// a rank of one is killed its job ends, and the other goes on; so does it if gompirun is.
func TestNeighborPrograms(t *testing.T) {
	for i, c := range []struct{ late, victim, flags string }{
		{"0", "", "--transport shm"}, {"1", "", ""}, {"1", "", "--transport tcp"},
		{"0", "rank 0", ""}, {"0", "rank 1", ""}, {"0", "head 0", ""}, {"0", "head 1", ""},
		{"joins", "rank 0", ""}, {"joins", "rank 1", ""},
	} {
		file := filepath.Join(t.TempDir(), strconv.Itoa(i))
		var results [2]mpitest.Result
		var both sync.WaitGroup
		for side := range results {
			both.Go(func() {
				s := strconv.Itoa(side)
				results[side] = osRanks(t, 2, []string{"neighbor", file, s, c.late, c.victim}, mpitest.Flags(strings.Fields(c.flags)...))
			})
		}
		both.Wait()
		for side, r := range results {
			if dies := strings.HasSuffix(c.victim, strconv.Itoa(side)); r.Status == 0 == dies || r.Status == 124 {
				t.Errorf("%+v: side %d: status %d\n%s%s", c, side, r.Status, r.Stdout, r.Stderr)
			}
		}
	}
}
