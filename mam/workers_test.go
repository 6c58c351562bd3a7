// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"testing"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// Several threads of a rank move what is large: elements of all kinds of data have the right
// places, between several numbers of ranks, in pieces that do not divide what there is.
func TestHands(t *testing.T) {
	for _, method := range []mam.Method{mam.COL, mam.P2P, mam.RMALock, mam.RMALockall, mam.Pull} {
		for _, transport := range []string{"inproc", "shm", "tcp"} {
			t.Run(fmt.Sprint(method, "/", transport), func(t *testing.T) {
				// Some parts are large, and others are not.
				inHands(t, mam.Config{Method: method, Strategy: mam.Blocking}, transport, 3<<20+1)
			})
		}
	}
}

func inHands(t *testing.T, config mam.Config, transport string, n int) {
	l := mam.Block(n)
	constant := func(i int) uint16 { return uint16(i * 7) }
	variable := func(i int) uint32 { return uint32(i) * 3 }
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		var c []uint16
		var v []uint32
		err := mam.Loop(t.Context(), world, config, func(m *mam.Module) error {
			if m.Role() == mam.Source {
				fill(m, &c, l, constant)
				fill(m, &v, l, variable)
			}
			return errors.Join(mam.Distributed(m, "c", &c, l, mam.Constant), mam.Distributed(m, "v", &v, l))
		}, func(m *mam.Module, i int) (bool, error) {
			if err := errors.Join(is(m, "c", c, constant), is(m, "v", v, variable)); err != nil {
				return false, err
			}
			if at, err := mpi.AllreduceOne(m.Comm(), i, mpi.Max); err != nil || at != i {
				return false, fmt.Errorf("iteration %d beside %d: %w", i, at, err)
			}
			if m.Comm().Size() == 2 && m.Times().NS == 1 {
				return true, nil
			}
			return false, m.SetTarget(map[int]int{2: 3, 3: 1, 1: 2}[m.Comm().Size()])
		})
		if err != nil && !errors.Is(err, mpi.ErrLeaving) {
			t.Fatal(err)
		}
	}, mpitest.Transport(transport), mpitest.Setting("GOMPI_MAM_THREADS", "3"))
}

// handsDie: a source dies while several threads read what it has, or copy, and the change is
// rolled back, or has happened.
var handsDie = []scenes.Scene{
	{Name: "handspull", Ranks: 4, Run: bereavedOf(handsLayout, mam.Config{Method: mam.Pull, Strategy: mam.Blocking}, 1, 3, moving, anyTime()), Dies: 1},
	{Name: "handslock", Ranks: 4, Run: bereavedOf(handsLayout, mam.Config{Method: mam.RMALock, Strategy: mam.Blocking}, 1, 3, moving, anyTime()), Dies: 1},
	{Name: "handslockall", Ranks: 4, Run: bereavedOf(handsLayout, mam.Config{Method: mam.RMALockall, Strategy: mam.Blocking}, 1, 3, moving, anyTime()), Dies: 1},
}

var handsLayout = mam.Block(4_500_001) // 4 MiB and more of each of four

func TestHandsDeath(t *testing.T) {
	t.Setenv("GOMPI_MAM_THREADS", "3") // of processes; goroutines have two processors by default
	scenes.Run(t, handsDie)
}
