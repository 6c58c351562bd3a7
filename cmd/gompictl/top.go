// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/internal/top"
	"gompi/internal/top/screen"
)

const topHelp = `Usage: gompictl top JOB [--interval D] [--hosts] [--sort KEY] [--json]

Shows what the processes of a job do while they do it: processors and memory that they
use, messages and bytes that they send and receive in a second, collective calls, what
each waits in, for how long and where in the program; the process sets, and changes as
they happen. No process is disturbed for it.

On a terminal it goes on until q or ^C is pressed, a signal comes (INT, TERM) or the job
ends: status 0. s and S choose what the rows are sorted by, r turns them round, h takes
the processes of each host together, the arrows, PgUp, PgDn, Home and End scroll. Without
colours: NO_COLOR=1. Where standard output is no terminal, a table is written once, or
after each interval if one is given.

  --interval D   time between two looks (default 1s)
  --hosts        one row for each host
  --sort KEY     rank, host, ranks (of --hosts), cpu, mem, sent, received, out, in, coll, wait
  --json         one JSON object a line in place of a table: docs/running.md

k, M and G are powers of 1000. Messages are those of point-to-point operations and the
steps of collectives that go by messages; those of collectives through shared memory and
of one-sided operations are none.
`

// topOptions is the parsed command line of top.
type topOptions struct {
	job      string
	interval time.Duration // 0: none was given
	json     bool
	view     top.View
}

// leastInterval is the shortest interval: rates over less mean little.
const leastInterval = 250 * time.Millisecond

func askedTop(args []string) (*topOptions, error) {
	t := &topOptions{}
	var jobs []string
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		name, value, is := strings.Cut(a, "=")
		if name == "--interval" || name == "--sort" {
			if !is {
				if len(args) == 0 {
					return nil, usagef("%s needs a value (try gompictl top --help)", name)
				}
				value, args = args[0], args[1:]
			}
		}
		switch {
		case name == "--interval":
			var err error
			if t.interval, err = time.ParseDuration(value); err != nil || t.interval < leastInterval {
				return nil, usagef("--interval %s: a time such as 2s, at least %v", value, leastInterval)
			}
		case name == "--sort":
			t.view.Key = value
		case a == "--json":
			t.json = true
		case a == "--hosts":
			t.view.Hosts = true
		case strings.HasPrefix(a, "-"):
			return nil, usagef("top has no flag %s (try gompictl top --help)", a)
		default:
			jobs = append(jobs, a)
		}
	}
	if len(jobs) != 1 {
		return nil, usagef("top needs one JOB (see gompictl ps)")
	}
	t.job = jobs[0]
	if keys := top.Keys(t.view.Hosts, true); t.view.Key != "" && !slices.Contains(keys, t.view.Key) {
		return nil, usagef("--sort %s: one of %s", t.view.Key, strings.Join(keys, ", "))
	}
	return t, nil
}

func topJob(ctx context.Context, tty terminal, args []string) error {
	t, err := askedTop(args)
	if err != nil {
		return err
	}
	err = t.run(ctx, tty)
	if t.repeats(tty) && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // a signal is a regular way to quit
	}
	return err
}

// onPage reports whether the job is shown on a page of a terminal.
func (t *topOptions) onPage(tty terminal) bool { return tty.screen && !t.json }

// repeats reports whether top runs until the user quits, or the job ends.
func (t *topOptions) repeats(tty terminal) bool { return t.onPage(tty) || t.interval > 0 }

// run shows the job. It returns the error of ctx unless something else has ended it
// before.
func (t *topOptions) run(ctx context.Context, tty terminal) error {
	tool, j, err := dial(ctx, t.job)
	if err != nil {
		return err
	}
	w := &jobView{tool: tool, job: j, every: cmp.Or(t.interval, time.Second)}
	defer w.tool.Close()
	name := fmt.Sprintf("%016x", uint64(j.Job))
	first, err := w.look(ctx)
	if err != nil {
		return err
	}
	var pids []string
	for i := range first.Procs {
		pids = append(pids, fmt.Sprint(first.Procs[i].PID))
	}
	t.view.Title, t.view.Describe = fmt.Sprintf("job %s  %s", name, program(pids)), changeLine
	if t.onPage(tty) {
		return w.onTerminal(ctx, tty, &t.view, first)
	}
	show := func(s top.Sample) error { return table(tty.out, &t.view, s) }
	if t.json {
		js := &top.JSON{Job: name, Out: tty.out}
		js.Begin(&first)
		show = func(s top.Sample) error { return js.Write(&s) }
	} else {
		t.view.Add(first)
	}
	return w.repeat(ctx, t.repeats(tty), show)
}

// table writes one table, with an empty line after it.
func table(out io.Writer, v *top.View, s top.Sample) error {
	v.Add(s)
	_, err := io.WriteString(out, strings.Join(v.Table(), "\n")+"\n\n")
	return err
}

// jobView takes samples of a job.
type jobView struct {
	tool  *client.Tool
	job   client.JobAddr
	every time.Duration
}

// errEnded means that the job has ended.
var errEnded = errors.New("the job has ended")

// look takes a sample. After an error, such as errEnded, there is no other.
func (w *jobView) look(ctx context.Context) (s top.Sample, err error) {
	if s.Procs, err = w.tool.Used(ctx); err == nil {
		s.Sets, err = w.tool.Sets(ctx)
	}
	if err == nil {
		s.Ops, err = w.tool.Ops(ctx)
	}
	s.When = time.Now()
	return s, w.why(ctx, err)
}

// why distinguishes the end of the job from other errors.
func (w *jobView) why(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // other errors do not matter then
		return ctx.Err()
	}
	jobs, other := client.Jobs()
	if other == nil && !slices.ContainsFunc(jobs, func(j client.JobAddr) bool { return j.Job == w.job.Job }) || errors.Is(err, io.EOF) || errors.Is(err, protocol.ErrEnding) {
		return errEnded
	}
	return errors.New(unanswered(err))
}

// repeat shows a sample after each interval until the job ends; or one sample.
func (w *jobView) repeat(ctx context.Context, forever bool, show func(top.Sample) error) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		s, err := w.look(ctx)
		switch {
		case errors.Is(err, errEnded) && forever:
			return nil
		case err != nil:
			return err
		}
		if err := show(s); err != nil || !forever {
			return err
		}
	}
}

// opsInterval is how often a live view checks whether a change has a new state.
const opsInterval = 250 * time.Millisecond

// onTerminal shows the job until the user quits, or it ends.
func (w *jobView) onTerminal(ctx context.Context, tty terminal, v *top.View, first top.Sample) error {
	samples, ended := make(chan top.Sample, 1), make(chan error, 1)
	v.Add(first)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- w.follow(ctx, first, samples)
	}()
	err := screen.Show(ctx, nil, v, samples, ended)
	cancel()
	<-done
	if errors.Is(err, errEnded) {
		_, err = fmt.Fprintf(tty.out, "%s: %v\n", v.Title, errEnded)
	}
	return err
}

// follow takes a sample after each interval, and when a change has a new state, until
// there is no other or ctx is done; it returns the error.
func (w *jobView) follow(ctx context.Context, last top.Sample, samples chan<- top.Sample) error {
	tick := time.NewTicker(min(opsInterval, w.every))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if time.Since(last.When) < w.every-opsInterval/2 {
			ops, err := w.tool.Ops(ctx)
			if err != nil {
				return w.why(ctx, err)
			}
			if !opsChanged(last.Ops, ops) {
				continue
			}
		}
		s, err := w.look(ctx)
		if err != nil {
			return err
		}
		last = s
		select {
		case samples <- s:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// opsChanged reports whether there are new operations, or new states.
func opsChanged(before, now []protocol.OpReport) bool {
	return !slices.EqualFunc(before, now, func(a, b protocol.OpReport) bool {
		return a.Op.Op == b.Op.Op && a.Op.State == b.Op.State && a.Waits == b.Waits
	})
}

// changeLine describes a change in one line.
func changeLine(r *protocol.OpReport) string {
	text := fmt.Sprintf("%s change %d: %v %s: %s, %v", asked(r), r.Op.Op, r.Kind, inputs(r), sizes(r), r.Op.State)
	switch why := reason(r); {
	case why != "-":
		text += ", " + why
	case r.Op.State.Over():
		text += " in " + msec(max(r.Op.Times.Decided, r.Op.Times.Gone))
	}
	return text
}

// onScreen reports whether standard output is a terminal on which a cursor can move.
func onScreen() bool {
	_, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS)
	return err == nil && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
}
