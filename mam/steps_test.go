// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// What moves at a commit is cut into steps, of which each is counted when it has moved, by
// every method and of all kinds of data; and all of it comes.
func TestSteps(t *testing.T) {
	mam.SetStep(t, 1<<10)
	const n = 2000
	layouts := map[string]mam.Layout{"block": mam.Block(n), "cyclic": mam.BlockCyclic(n, 3)}
	for _, method := range []mam.Method{mam.COL, mam.P2P, mam.RMALock, mam.RMALockall, mam.Pull} {
		for name, l := range layouts {
			for hosts, opts := range map[string][]mpitest.Option{"one host": nil, "hosts": {testjob.Hosts(3, 2), mpitest.Transport("shm,tcp")}} {
				t.Run(fmt.Sprintf("%v, %s, %s", method, name, hosts), func(t *testing.T) {
					var counted atomic.Int32
					mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
						if err := inSteps(t, world, mam.Config{Method: method, Strategy: mam.Blocking}, l, &counted); err != nil {
							t.Fatal(err)
						}
					}, opts...)
					if counted.Load() == 0 {
						t.Error("no source has counted what has moved")
					}
				})
			}
		}
	}
}

// inSteps grows from 2 to 5 ranks, and shrinks to 3, with constant and variable data.
func inSteps(t *mpitest.T, world *mpi.Comm, config mam.Config, l mam.Layout, counted *atomic.Int32) error {
	var m *mam.Module
	m, role, err := mam.Init(t.Context(), world, config, func(u *mam.User) error {
		if u.Resume(); u.Role != mam.NewRank && m.Told() > 0 {
			counted.Add(1)
		}
		u.Progress()
		return nil
	})
	if err != nil {
		return err
	}
	defer m.Finalize()
	var x, y []int64
	table, step := make([]int64, 1000), 0
	of := func(k int64) func(i int) int64 { return func(i int) int64 { return int64(i) * k } }
	if role == mam.Source {
		fill(m, &x, l, of(3))
		fill(m, &y, l, of(5))
		for i := range table {
			table[i] = of(7)(i)
		}
	}
	text := longText{}
	if role == mam.Source {
		text.fill()
	}
	err = errors.Join(mam.Distributed(m, "x", &x, l), mam.Distributed(m, "y", &y, l, mam.Constant),
		mam.Replicated(m, "table", &table, mam.Constant), mam.Encoded(m, "text", &text), mam.ReplicatedOne(m, "step", &step))
	if err != nil {
		return err
	}
	for sizes := []int{2, 5, 3}; ; {
		err := errors.Join(is(m, "x", x, of(3)), is(m, "y", y, of(5)), text.check())
		for i := range table {
			if table[i] != of(7)(i) {
				err = errors.Join(err, fmt.Errorf("element %d of the table is %d", i, table[i]))
				break
			}
		}
		if step++; err != nil || step == len(sizes) {
			return err
		}
		if err := m.SetTarget(sizes[step]); err != nil {
			return err
		}
		if _, err := m.Checkpoint(mam.Wait); errors.Is(err, mpi.ErrLeaving) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// longText is a value of several steps.
type longText struct{ b []byte }

func (x *longText) fill() {
	for i := range 5000 {
		x.b = append(x.b, byte(i*i))
	}
}

func (x *longText) MarshalBinary() ([]byte, error) { return x.b, nil }

func (x *longText) UnmarshalBinary(b []byte) error {
	x.b = append([]byte(nil), b...)
	return nil
}

func (x *longText) check() error {
	for i := range 5000 {
		if len(x.b) != 5000 || x.b[i] != byte(i*i) {
			return fmt.Errorf("the value has %d bytes, or another one at %d", len(x.b), i)
		}
	}
	return nil
}
