// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions"
)

// dppPast is the loop of the documentation, which grows by one and shrinks by one again and
// again: of the sets that it has named only those of the latest changes live.
func dppPast(ctx context.Context, world *mpi.Comm) error {
	const changes = 12
	s, err := sessions.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	main, n, base := "", 0, 2
	var named []string
	newcomer, err := hint(s, worldSet, "mpi_dyn")
	if err != nil {
		return err
	}
	if newcomer {
		main, err = lookup(ctx, s, worldSet, worldSet, "main_pset")
	} else {
		main, err = s.Main()
	}
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		comm, err := commOf(ctx, s, main)
		if err != nil {
			return err
		}
		if comm.Rank() == 0 && (newcomer || !first) {
			if err := s.FinalizePSetOp(ctx, main); err != nil {
				return err
			}
		}
		if n, err = mpi.BcastOne(comm, n, 0); err != nil {
			return err
		}
		if n == changes {
			living := 0
			for _, name := range named {
				switch _, err := s.Info(name); {
				case err == nil:
					living++
				case !errors.Is(err, mpi.ErrSetGone):
					return err
				}
			}
			if living > 10 {
				return fmt.Errorf("%d of the %d sets that %d changes have made live", living, len(named), n)
			}
			return comm.Barrier()
		}
		if comm.Rank() == 0 {
			op, info := sessions.PSetOpGrow, mpi.NewInfo(sessions.ProcsAdd, "1")
			if comm.Size() > base {
				op, info = sessions.PSetOpShrink, mpi.NewInfo(sessions.ProcsSub, "1")
			}
			x, err := s.PSetOp(ctx, op, []string{main}, info)
			for errors.Is(err, sessions.ErrRefused) && ctx.Err() == nil { // others do not follow it yet
				x, err = s.PSetOp(ctx, op, []string{main}, info)
			}
			if err == nil && op == sessions.PSetOpGrow {
				err = publish(s, x.Out[0], "main_pset", x.Out[1])
			}
			if err != nil {
				return err
			}
		}
		x, err := dppTold(ctx, s, comm, main)
		if err != nil {
			return err
		}
		n++
		named = append(named, x.Out...)
		main = x.Out[1]
		stays, err := hint(s, main, "mpi_included")
		if err == nil {
			err = comm.Disconnect()
		}
		if err != nil || !stays {
			return err
		}
	}
}
