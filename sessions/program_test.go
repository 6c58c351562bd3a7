// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gompi/mpi"
	"gompi/sessions"
)

// sum makes a communicator of the world's set in a session of its own and uses it.
func sum(ctx context.Context, what string) error {
	s, err := sessions.Open(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	c, err := s.Comm("mpi://WORLD")
	if err == nil {
		var n int
		if n, err = mpi.AllreduceOne(c, 1, mpi.Sum); err == nil && n != c.Size() {
			err = fmt.Errorf("sum %d of %d", n, c.Size())
		}
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// beforeAndAfterMain is a program with sessions before, in, beside and after Main.
func beforeAndAfterMain() {
	say := func(err error) {
		if err != nil {
			fmt.Println(err)
		}
	}
	ctx := context.Background()
	say(sum(ctx, "before"))
	say(sum(ctx, "before, again"))
	beside, err := sessions.Open(ctx)
	say(err)
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		if err := sum(ctx, "in"); err != nil {
			return err
		}
		return world.Barrier()
	})
	say(beside.Process().Self().Barrier())
	say(beside.Process().World().Barrier()) // it is used beside Main, too
	say(beside.Close())
	say(sum(ctx, "after"))
}

// noMain is a program that has sessions only.
func noMain() {
	for i := range 3 {
		if err := sum(context.Background(), fmt.Sprint("session ", i)); err != nil {
			fmt.Println(err)
		}
	}
}

// Sessions can be opened before, beside and after Main, and without one; the program
// then ends in order.
func TestSessionsAndMain(t *testing.T) {
	for _, name := range []string{"around", "nomain"} {
		if out := rankProgram(t, 3, name); out != "" {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}
