// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/internal/engine"
)

// Main is a program's main function: it joins the job, runs f with the world,
// and leaves the job. ctx ends when the job is being ended. An error of f is
// printed with the rank and ends the process with status 1, and so the job
// (under --ft the others go on). Main returns only when f has returned nil and
// nothing of the process is on its way: then the program may end at any moment.
// Until it does, sessions can be opened, and the process stays a member of the
// job; communicators that are left, such as the world, are freed. Where f returns that the process has left its set by
// a change, or that the change it was started for was rolled back, the process
// ends with status 0.
func Main(f func(ctx context.Context, world *Comm) error) {
	p, err := Init()
	if err != nil {
		switch {
		case errors.Is(err, core.EndDiscarded):
			os.Exit(0)
		case !errors.Is(err, protocol.ErrEnding):
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	err = f(p.Context(), p.World())
	p.core.Returned()
	left := errors.Is(err, core.EndLeft)
	switch {
	case p.core.Discards(err):
		os.Exit(0)
	case err != nil && !left:
		p.fail(1, err)
	}
	end := (*Process).rest
	if left {
		end = (*Process).quitProgram
	}
	if err := p.leave(end); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.core.Called(), err)
		os.Exit(1)
	}
	if left {
		os.Exit(0)
	}
}

// fail prints an error with the rank and ends the process. What is only the echo
// of another rank's end is not printed: gompirun says which rank was first.
func (p *Process) fail(code int, err error) {
	p.core.Leaving("exit after an error")
	if errors.Is(err, ErrProcFailed) || errors.Is(err, ErrAborted) || p.core.Ctx.Err() != nil {
		select {
		case <-p.core.Ctx.Done():
			os.Exit(code)
		case <-time.After(echoWait):
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", p.core.Called(), err)
	os.Exit(code)
}

// echoWait is how long a failing rank waits for the news that the job is
// ending anyway.
const echoWait = time.Second

// Abort ends the whole job. Its exit status is the low eight bits of code, or 1 if they are
// 0; gompirun prints code as it is. Abort does not return. MPI 4.1 section 9.6.
func (c *Comm) Abort(code int) { c.of("Abort").Proc.Abort(code, "at "+engine.Caller()) }
