// SPDX-License-Identifier: Apache-2.0

package mpitest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/internal/base/settings"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// Whatever a knob admits, messages of all sizes arrive.
func TestKnobsAtTheirBounds(t *testing.T) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, r := range []settings.Range{settings.Eager, settings.Credit, settings.Ring, settings.TCPEager, settings.TCPChunk} {
			for _, n := range []int64{r.Min, r.Max} {
				if strings.HasPrefix(r.Env, "GOMPI_TCP") && transport != "tcp" || r == settings.Ring && transport != "shm" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s=%d", transport, r.Env, n), func(t *testing.T) {
					mpitest.Run(t, 2, ringOfSizes, mpitest.Transport(transport), mpitest.Setting(r.Env, fmt.Sprint(n)))
				})
			}
		}
	}
}

// ringOfSizes sends messages of several sizes around, and to the rank itself.
func ringOfSizes(t *mpitest.T, world *mpi.Comm) {
	next, prev := (world.Rank()+1)%world.Size(), (world.Rank()+world.Size()-1)%world.Size()
	for _, size := range []int{0, 1, 31, 32, 63, 65, 1000, 70_000, 300_000} {
		out, in := make([]byte, size), make([]byte, size)
		for i := range out {
			out[i] = byte(i*7 + size)
		}
		for _, p := range [][2]int{{next, prev}, {world.Rank(), world.Rank()}} {
			clear(in)
			if _, err := mpi.Sendrecv(world, out, p[0], 1, in, p[1], 1); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(in, out) {
				t.Fatalf("%d bytes from rank %d are not what was sent", size, p[1])
			}
		}
	}
}

// What a knob does not admit is an error of the process that reads it.
func TestKnobsBeyondTheirBounds(t *testing.T) {
	for _, r := range []settings.Range{settings.Eager, settings.Credit, settings.Ring, settings.TCPEager, settings.TCPChunk, settings.Spin} {
		for _, n := range []int64{r.Min - 1, r.Max + 1} {
			j := testjob.New(t, mpitest.Transport("shm,tcp"), mpitest.Setting(r.Env, fmt.Sprint(n)))
			if _, err := j.Boot(j.Add(1)[0]); err == nil || !strings.Contains(err.Error(), r.Env) {
				t.Errorf("%s=%d: error %v", r.Env, n, err)
			}
		}
	}
}
