// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gompi/internal/control/protocol"
	"gompi/mpi"
	"gompi/sessions"
)

// killsProgram follows changes until its end, and goes on when others die: what it
// does with them fails until the next change.
func killsProgram() {
	mpi.Main(func(ctx context.Context, comm *mpi.Comm) error {
		comm, i, err := enter(ctx, comm)
		if err != nil {
			return err
		}
		fmt.Println("at", os.Getenv(protocol.EnvAddr))
		w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
		if err != nil {
			return err
		}
		for broken := false; ; i++ {
			c, err := w.Check(i)
			if err != nil {
				return err
			}
			if c != nil {
				next, err := c.Commit(ctx)
				if err == nil {
					comm, broken = next, false
					continue
				}
				if !errors.Is(err, sessions.ErrRolledBack) {
					return err // ErrLeaving, too
				}
			}
			if !broken && ring(comm, []int64{int64(i), 0}) != nil {
				comm.Revoke()
				broken = true
			}
			<-time.After(time.Millisecond)
		}
	})
}
