// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"gompi/bench/report"
)

// session runs jobs and collects what they say.
type session struct {
	opt   options
	impls []impl
	board *board
	raw   io.Writer // nil, or where every result goes
	log   io.Writer // nil, or a terminal for progress
}

// giveUp is after how many failures a job is not run again with that
// implementation: a peer that hangs would cost its time limit every round.
const giveUp = 2

// errHung marks a process that was stopped at its time limit.
var errHung = errors.New("hung")

// measure runs all rounds. A failing process is noted on the board; the error
// is that of ctx, or of writing results.
func (s *session) measure(ctx context.Context, jobs []job) error {
	began := time.Now()
	for r := 0; ; r++ {
		if r >= s.opt.rounds {
			if time.Since(began) >= s.opt.untilBoth {
				break
			}
			if jobs = s.lacking(jobs); len(jobs) == 0 {
				break
			}
		}
		for k, j := range jobs {
			s.progress("round %d of %s, job %d of %d (%s), %v", r+1, s.rounds(), k+1, len(jobs), j.name(), time.Since(began).Round(time.Second))
			for i := range s.impls {
				// Each round begins with another implementation: after a pause the
				// machine may be slower or faster.
				m := s.impls[(i+r)%len(s.impls)]
				if s.board.failures(m.name, j) >= giveUp {
					continue
				}
				rs, err := s.one(ctx, m, j)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := s.write(m.name, rs); err != nil {
					return err
				}
				if j.redist() {
					rs, err = j.redistRows(rs, err)
				}
				if err != nil {
					s.board.fail(m.name, j, err)
				}
				for _, x := range rs {
					s.board.add(m.name, x)
				}
			}
		}
	}
	s.progress("")
	return nil
}

// lacking are the jobs of which more rounds are wanted: of a state of the machine they have
// too little.
func (s *session) lacking(jobs []job) []job {
	var names []string
	for _, m := range s.impls {
		names = append(names, m.name)
	}
	return s.board.lacking(jobs, names)
}

// rounds tells how many there will be.
func (s *session) rounds() string {
	if s.opt.untilBoth > 0 {
		return fmt.Sprintf("%d or more, until %v are over", s.opt.rounds, s.opt.untilBoth)
	}
	return strconv.Itoa(s.opt.rounds)
}

// progress rewrites one line of a terminal.
func (s *session) progress(format string, args ...any) {
	if s.log != nil {
		fmt.Fprintf(s.log, "\r"+format+"\x1b[K", args...)
	}
}

func (s *session) write(impl string, rs []report.Result) error {
	if s.raw == nil {
		return nil
	}
	for _, x := range rs {
		x.Transport = impl + "/" + x.Transport
		if err := report.Write(s.raw, x); err != nil {
			return err
		}
	}
	return nil
}

// one runs a job once with one implementation. Of a job that is stopped at its
// time limit it gives what was measured before, and the error.
func (s *session) one(ctx context.Context, m impl, j job) ([]report.Result, error) {
	argv, env := m.launch(j.transport, j.begins(m.name))
	switch {
	case j.bench == startup:
		argv = append(append(argv, m.empty), m.emptyIs...)
	case j.redist():
		argv = append(append(argv, m.redist), j.args(s.opt.msec)...)
	default:
		argv = append(append(argv, m.bench), j.args(s.opt.msec)...)
	}
	began := time.Now()
	out, err := runLimited(ctx, argv, env, j.limit(s.opt))
	took := time.Since(began)
	hung := errors.Is(err, errHung)
	if err != nil && !hung {
		return nil, err
	}
	if j.bench == startup && !hung {
		x := report.Result{Bench: startup, Transport: j.transport, Ranks: j.ranks}
		x.SetTimes([]float64{float64(took.Nanoseconds()) / 1e3})
		return []report.Result{x}, nil
	}
	if hung {
		out = out[:bytes.LastIndexByte(out, '\n')+1]
	}
	rs, rerr := report.Read(m.name+" "+j.name(), bytes.NewReader(out))
	if rerr != nil {
		return nil, rerr
	}
	for i := range rs {
		if x := &rs[i]; x.Spawn != nil && x.Ranks == 1 {
			x.Ranks, x.Usec, x.Spawn = x.Spawn.Count, 1e3*x.Spawn.Msec, nil
		}
	}
	if j.redist() {
		return rs, err
	}
	want := j.points()
	if len(rs) > len(want) || len(rs) < len(want) && !hung {
		return nil, fmt.Errorf("%d results instead of %d", len(rs), len(want))
	}
	for i, x := range rs {
		if got := (point{x.Bench, x.Transport, x.Ranks, x.Bytes}); got != want[i] {
			return nil, fmt.Errorf("result %d is %+v instead of %+v", i, got, want[i])
		}
	}
	if hung {
		err = fmt.Errorf("%w, %d of %d points measured", err, len(rs), len(want))
	}
	return rs, err
}

// maxOutput bounds what one program may print, in bytes.
const maxOutput = 4 << 20

// runLimited runs a command in a process group of its own and returns its
// standard output. At the limit, or when ctx ends, the group gets SIGTERM (a
// launcher takes its ranks down) and soon SIGKILL; the output up to then comes
// with the error.
func runLimited(ctx context.Context, argv, env []string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: stopped after %v", errHung, limit))
	defer cancel()
	out, errOut := bounded{max: maxOutput}, bounded{max: 64 << 10}
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &out, &errOut
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 3 * time.Second
	err := c.Run()
	if c.Process != nil {
		// Nothing of the job may disturb the next one. The group still exists
		// only if a member was left behind.
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return out.b.Bytes(), context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, tail(append(errOut.b.Bytes(), out.b.Bytes()...), 300))
	case out.cut:
		return nil, fmt.Errorf("more than %d bytes of output", maxOutput)
	}
	return out.b.Bytes(), nil
}

// bounded keeps the first max bytes and drops the rest.
type bounded struct {
	b   bytes.Buffer
	max int
	cut bool
}

func (w *bounded) Write(p []byte) (int, error) {
	n := min(len(p), w.max-w.b.Len())
	w.b.Write(p[:n])
	w.cut = w.cut || n < len(p)
	return len(p), nil
}
