// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A newcomer to which data comes slowly, piece after piece, for longer than the deadlines of
// the change, comes in the end. One to which no more comes is given up at the deadline,
// though much has come before: the sources have what they had, and the next one comes.
func TestDataComesSlowly(t *testing.T) {
	for _, config := range []mam.Config{
		{Method: mam.Pull, Strategy: mam.WaitDrains},       // it reads before it is ready
		{Method: mam.RMALockall, Strategy: mam.WaitDrains}, // and afterwards
	} {
		for _, hangs := range []bool{false, true} {
			t.Run(fmt.Sprint(config.Method, "/", map[bool]string{false: "reads", true: "hangs"}[hangs]), func(t *testing.T) {
				t.Parallel() // it waits, mostly
				s := &seep{dam: newDam(config), config: config, hangs: hangs}
				s.drops = make(chan struct{})
				t.Cleanup(s.open)
				mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) {
					if err := s.run(t, world); err != nil {
						t.Fatal(err)
					}
				}, mpitest.Transport("shm"), s.option())
			})
		}
	}
}

// seep is a change by which one comes, through a dam that lets pieces pass one by one.
type seep struct {
	*dam
	config mam.Config
	hangs  bool // in the end nothing passes
}

const (
	seepReady = 3 * time.Second / 2 // a deadline
	seepEvery = seepReady / 10      // a piece
	// seepPieces are more than pass within three deadlines.
	seepPieces = 48
	seepFirst  = 4 // pieces come before none does
)

var seepLayout = mam.Block(2 * seepPieces << 15) // of 8 B, in pieces of 256 KiB

func (s *seep) run(t *mpitest.T, world *mpi.Comm) error {
	of := func(i int) int64 { return int64(i) << 20 }
	var x []int64
	m, role, err := mam.Init(t.Context(), world, s.config, nil)
	if s.hangs && errors.Is(err, mpi.ErrRolledBack) {
		return nil // the newcomer that hung
	}
	if err != nil {
		return err
	}
	defer m.Finalize()
	if role == mam.Source {
		fill(m, &x, seepLayout, of)
	}
	if err := mam.Distributed(m, "x", &x, seepLayout, mam.Constant); err != nil {
		return err
	}
	asked := make(chan error, 1)
	if role == mam.Source {
		go func() { asked <- s.change(t.Context()) }()
	}
	for role == mam.Source {
		select {
		case err := <-asked:
			if asked = nil; err != nil {
				return err
			}
		default:
		}
		time.Sleep(iterationTime) //archtest:sleep an iteration of the program
		state, err := m.Checkpoint(mam.Check)
		if err != nil {
			return err
		}
		if state == mam.Completed {
			break
		}
		if s.hangs && s.isOpen() {
			if err := errors.Join(is(m, "x", x, of), m.SetTarget(2)); err != nil {
				return err
			}
		}
	}
	if role == mam.Source && asked != nil {
		err = <-asked
	}
	if n := m.Comm().Size(); n != 2 {
		err = errors.Join(err, fmt.Errorf("%d ranks", n))
	}
	return errors.Join(err, is(m, "x", x, of), m.Comm().Barrier(), m.Finalize())
}

// change asks for it, and lets the data pass.
func (s *seep) change(ctx context.Context) error {
	defer s.open()
	op, err := sessions.Submit(ctx, sessions.Request{
		Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1},
		Deadlines: sessions.Deadlines{Ready: seepReady, Accept: seepReady},
	})
	if err != nil {
		return err
	}
	defer op.Free()
	ctx, cancel := context.WithTimeout(ctx, 20*seepReady)
	defer cancel()
	every := time.NewTicker(seepEvery)
	defer every.Stop()
	var began time.Time
	for passed := 0; passed < seepFirst || !s.hangs; passed++ {
		select {
		case s.drops <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d pieces have come: %w", passed, ctx.Err())
		}
		if passed == 0 {
			began = time.Now()
		}
		if !s.hangs && time.Since(began) > 3*seepReady {
			s.open()
			break
		}
		<-every.C
	}
	x, err := op.Decided(ctx)
	if !s.hangs {
		if err == nil && x.State == sessions.RolledBack {
			err = fmt.Errorf("with data coming all the time it is %v: %w", x.State, x.Err)
		}
		return err
	}
	if err == nil && (x.State != sessions.RolledBack || !strings.Contains(x.Err.Error(), "deadline")) {
		err = fmt.Errorf("without its data it is %v: %w", x.State, x.Err)
	}
	return err
}
