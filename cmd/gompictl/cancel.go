// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

const cancelHelp = `Usage: gompictl cancel JOB OP

Withdraws a change of a running job that is not decided: OP is its number, as
gompictl ops JOB and gompictl resize show it. The job goes on as it was, newcomers
are ended, and a process that waits in Commit is told that the change was rolled
back. That is so also when processes have taken it up already and others have not,
as with a change that is late (gompirun --commit-timeout).

Status 0: it is withdrawn, or had not happened anyway; 1: it was committed before, or
the job knows no such operation.
`

// cancel cancels an operation.
func cancel(ctx context.Context, tty terminal, args []string) error {
	if len(args) != 2 {
		return usagef("cancel needs a JOB and the number of an operation (see gompictl ops JOB)")
	}
	op, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil || op == 0 {
		return usagef("%q is no number of an operation (see gompictl ops %s)", args[1], args[0])
	}
	t, j, err := dial(ctx, args[0])
	if err != nil {
		return err
	}
	defer t.Close()
	r, err := t.Break(ctx, uint32(op))
	switch {
	case errors.Is(err, protocol.ErrNotFound):
		return fmt.Errorf("job %016x knows no operation %d: it has never been, or was over long ago (see gompictl ops %016x)", uint64(j.Job), op, uint64(j.Job))
	case err != nil:
		return err
	case r == nil:
		return errors.New("no answer")
	}
	return cancelled(tty, r)
}

// cancelled prints the result of the cancellation of an operation.
func cancelled(tty terminal, r *protocol.OpReport) error {
	switch s := r.Op.State; s {
	case change.Committed, change.Done:
		return fmt.Errorf("operation %d is %v: %s: %s", r.Op.Op, s, inputs(r), sizes(r))
	case change.Refused, change.Cancelled, change.RolledBack:
		_, err := fmt.Fprintf(tty.out, "operation %d is %v: %s; %s is as it was\n", r.Op.Op, s, why(&r.Op), inputs(r))
		return err
	default:
		return fmt.Errorf("operation %d is %v", r.Op.Op, s)
	}
}
