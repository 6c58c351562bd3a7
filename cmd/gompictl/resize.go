// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/launcher/rm"
)

const resizeHelp = `Usage: gompictl resize JOB +4|-4|=8 [--set NAME] [--detach]

Starts or ends processes of a running job: 4 more, 4 fewer (the last ones), or as
many as make it 8. (In zsh write '=8' with quotes.)

The program has to follow changes: each process calls sessions.Watch once and Check
in its loop; docs/sessions.md shows how. All adopt the change in the same iteration.

  --set NAME   change this process set (default: gompi://main, the job's main one);
               app:// may be left out; gompictl psets JOB lists them
  --detach     do not wait: gompictl ops JOB shows how far it is

It waits until the change is adopted and those who leave are gone, and prints when
the job came how far, counted from the request. To stop waiting (^C) does not stop
the change. Status 0: committed (or, with --detach, taken); 1: refused, rolled back,
or no answer. A change that the program does not adopt in time (--resize-timeout and
--commit-timeout of gompirun) is rolled back, and the job goes on as it was; gompictl
cancel JOB OP asks for the same at once.
`

// resizeRequest is the parsed command line of resize.
func resizeRequest(args []string) (job string, m *protocol.Resize, err error) {
	m = &protocol.Resize{}
	var plain []string
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		name, value, is := strings.Cut(a, "=")
		switch {
		case a == "--detach":
			m.Detach = true
		case name == "--set":
			if !is {
				if len(args) == 0 {
					return "", nil, usagef("--set needs the NAME of a process set (see gompictl psets JOB)")
				}
				value, args = args[0], args[1:]
			}
			m.Set = setName(value)
		case strings.HasPrefix(a, "--"):
			return "", nil, usagef("resize has no flag %s (try gompictl resize --help)", a)
		default:
			plain = append(plain, a)
		}
	}
	if len(plain) != 2 {
		return "", nil, usagef("resize needs a JOB and a size: gompictl resize JOB +4, -4 or =8 (see gompictl ps)")
	}
	size := plain[1]
	if size == "" || !strings.ContainsRune("+-=", rune(size[0])) {
		return "", nil, usagef("%q could mean two things: say +N for so many more, -N for fewer, =N for N in all", size)
	}
	most := protocol.MaxSpawn
	if size[0] == '-' {
		most = protocol.MaxMembers
	}
	by, to, ok := rm.ParseSize(size, most)
	if !ok {
		return "", nil, usagef("%q is no size: %cN with N from 1 to %d", size, size[0], most)
	}
	m.By, m.To = by, to
	return plain[0], m, nil
}

// setName completes the name of a set.
func setName(name string) string {
	switch {
	case name == "main":
		return "gompi://main"
	case strings.Contains(name, "://"):
		return name
	}
	return "app://" + name
}

func resize(ctx context.Context, tty terminal, args []string) error {
	job, m, err := resizeRequest(args)
	if err != nil {
		return err
	}
	t, j, err := dial(ctx, job)
	if err != nil {
		return err
	}
	defer t.Close()
	name := fmt.Sprintf("%016x", uint64(j.Job))
	last, err := follow(tty.progress, func(news func(*protocol.OpReport)) error { return t.Resize(ctx, m, news) })
	switch {
	case errors.Is(err, context.Canceled) && last != nil && !last.Op.State.Over():
		return fmt.Errorf("nobody waits for operation %d any more; it goes on: gompictl ops %s", last.Op.Op, name)
	case errors.Is(err, protocol.ErrNotFound):
		return fmt.Errorf("%w (gompictl psets %s lists the sets)", err, name)
	case errors.Is(err, io.EOF) && last != nil:
		return fmt.Errorf("the job has ended: operation %d was %v", last.Op.Op, last.Op.State)
	case err != nil && last != nil:
		return fmt.Errorf("operation %d was %v: %w", last.Op.Op, last.Op.State, err)
	case err != nil:
		return err
	case last == nil:
		return errors.New("no answer")
	}
	return outcome(tty.out, last, name)
}

// outcome prints how an operation has ended, or its present state.
func outcome(out io.Writer, r *protocol.OpReport, job string) error {
	switch s := r.Op.State; {
	case s == change.Done || s == change.Committed:
		fmt.Fprintf(out, "%s: %s, committed (operation %d)\n", inputs(r), sizes(r), r.Op.Op)
		return phases(out, r)
	case !s.Known():
		return fmt.Errorf("operation %d is in %s", r.Op.Op, unknown(s))
	case !s.Over():
		_, err := fmt.Fprintf(out, "operation %d is %v: gompictl ops %s shows how far it is\n", r.Op.Op, s, job)
		return err
	case s != change.Refused:
		if err := phases(out, r); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is as it was: %v: %s%s", inputs(r), r.Op.State, why(&r.Op), advice(&r.Op))
}

// why explains why an operation has failed.
func why(o *protocol.OpBody) string {
	if o.Text == "" {
		return "no reason given"
	}
	return o.Text
}

// advice tells what to do about a refusal.
func advice(o *protocol.OpBody) string {
	switch o.Why {
	case protocol.WhyNoWatch:
		return "\nEach process of the set must call sessions.Watch, and Check in its loop: see docs/sessions.md."
	case protocol.WhyUnwatched:
		return "\nA process has closed its watch, or is about to end: the set takes no more changes."
	case protocol.WhyTooMany:
		return "\n`gompirun --min`, `--max` and `--slots` say how many there may be."
	case protocol.WhyDeadline:
		return "\n`gompirun --resize-timeout` and `--commit-timeout` say how long a job may take to adopt a change; gompictl stacks JOB shows what its processes do."
	}
	return ""
}

// inputs lists the sets that change.
func inputs(r *protocol.OpReport) string {
	var names []string
	for _, s := range r.Inputs {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "the job"
	}
	return strings.Join(names, ", ")
}

// sizes describes the change of the number of processes.
func sizes(r *protocol.OpReport) string {
	switch {
	case r.After > 0:
		return fmt.Sprintf("%d -> %d processes", r.Before, r.After)
	case r.Joins+r.Leaves > 0:
		return fmt.Sprintf("%d processes, +%d -%d", r.Before, r.Joins, r.Leaves)
	}
	return fmt.Sprintf("%d processes", r.Before)
}

// phase is a step of an operation, with its time and a remark.
type phase struct {
	name string
	at   time.Duration
	note string
}

func phasesOf(r *protocol.OpReport) []phase {
	t := &r.Op.Times
	all := []phase{{name: "granted", at: t.Granted}}
	if r.Joins > 0 {
		all = append(all, phase{"ordered", t.Ordered, "the first start"}, phase{"ready", t.Ready, counted(r.Joins, "newcomer has", "newcomers have") + " joined"})
	} else { // the members learn it when the change is ready
		all = append(all, phase{"ordered", t.Ordered, "the news to the members"})
	}
	adopted := phase{name: "adopted", at: t.Adopted}
	if r.Op.Iteration > 0 {
		adopted.note = fmt.Sprintf("from iteration %d on", r.Op.Iteration-1)
	}
	decided := phase{"decided", t.Decided, "committed"}
	if s := r.Op.State; s.Over() && s != change.Done {
		decided.note = s.String()
	}
	all = append(all, adopted, decided)
	if r.Leaves > 0 {
		all = append(all, phase{"gone", t.Gone, counted(r.Leaves, "leaver has", "leavers have") + " ended"})
	}
	return slices.DeleteFunc(all, func(p phase) bool { return p.at == 0 })
}

func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", several)
}

// phases prints the times of an operation's steps.
func phases(out io.Writer, r *protocol.OpReport) error {
	var b strings.Builder
	for _, p := range phasesOf(r) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-8s%13s   %s", p.name, msec(p.at), p.note), " ") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func msec(d time.Duration) string {
	digits := 1
	if d < time.Millisecond {
		digits = 3
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', digits, 64) + " ms"
}

// follow shows the progress of an operation on a terminal until ask returns; last is the
// latest report.
func follow(progress io.Writer, ask func(news func(*protocol.OpReport)) error) (last *protocol.OpReport, err error) {
	var mu sync.Mutex
	show := func() {}
	if progress != nil {
		began := time.Now()
		show = func() {
			if last != nil {
				fmt.Fprintf(progress, "\r%s\x1b[K", line(last, time.Since(began)))
			}
		}
		tick := time.NewTicker(200 * time.Millisecond)
		done := make(chan struct{})
		var shown sync.WaitGroup
		shown.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-tick.C:
					mu.Lock()
					show()
					mu.Unlock()
				}
			}
		})
		defer func() {
			tick.Stop()
			close(done)
			shown.Wait()
			fmt.Fprint(progress, "\r\x1b[K")
		}()
	}
	err = ask(func(r *protocol.OpReport) {
		mu.Lock()
		defer mu.Unlock()
		last = r
		show()
	})
	return last, err
}

// line describes the state of an operation on one line.
func line(r *protocol.OpReport, since time.Duration) string {
	text := fmt.Sprintf("%s: %s, %v", inputs(r), sizes(r), r.Op.State)
	if !r.Op.State.Known() {
		return fmt.Sprintf("%s (%.1f s)", text, since.Seconds())
	}
	if r.Waits != "" {
		text += ", waits for " + r.Waits
	}
	return fmt.Sprintf("%s (%.1f s)", text, since.Seconds())
}
