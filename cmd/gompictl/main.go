// SPDX-License-Identifier: Apache-2.0

// Command gompictl shows the running jobs of this host, and changes their size.
// docs/running.md describes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"gompi/internal/base/version"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/launcher"
)

const usage = `Usage: gompictl ps                      list the running jobs of this host
       gompictl top JOB                 what the processes of a job do, again and again
       gompictl stacks JOB              what every process of a job is waiting for
       gompictl resize JOB +4|-4|=8     start or end processes of a job that follows that
       gompictl cancel JOB OP           withdraw a change that is not decided
       gompictl ops JOB                 how far the changes of a job are, and the latest that are over
       gompictl psets JOB [--dot|--svg] its process sets, and which was made of which
       gompictl queue [HEAD]            the jobs of a head of several, and those that wait
       gompictl COMMAND --help          more about a command
       gompictl --version               print the version
       (JOB: its number as ps shows it, or the first digits of it)

Only the user who started a job, and root, see it. docs/running.md says more.
`

// answerTimeout is the time limit for an answer of a job's gompirun.
const answerTimeout = 5 * time.Second

// terminal is the output of commands.
type terminal struct {
	out      io.Writer
	progress io.Writer // rewritten line by line; nil: no terminal
	screen   bool      // out is a terminal on which pages can be shown
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tty := terminal{out: os.Stdout, screen: onScreen()}
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err == nil {
		tty.progress = os.Stderr
	}
	if err := run(ctx, os.Args[1:], tty); err != nil {
		fmt.Fprintln(os.Stderr, "gompictl:", err)
		if errors.As(err, new(usageError)) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// usageError is a mistake in the command line: exit status 2.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// command is one of gompictl's commands.
type command struct {
	name, help string
	run        func(ctx context.Context, tty terminal, args []string) error
}

func commands() []command {
	return []command{
		{"ps", psHelp, ps},
		{"top", topHelp, topJob},
		{"stacks", "Usage: gompictl stacks JOB\n\nPrints what every process of a job is waiting for.\n", stacks},
		{"resize", resizeHelp, resize},
		{"cancel", cancelHelp, cancel},
		{"ops", opsHelp, ops},
		{"psets", psetsHelp, psets},
		{"queue", queueHelp, queue},
	}
}

func run(ctx context.Context, args []string, tty terminal) error {
	if len(args) == 0 {
		return usagef("no command given\n%s", strings.TrimSuffix(usage, "\n"))
	}
	switch args[0] {
	case "-h", "--help", "help":
		_, err := io.WriteString(tty.out, usage)
		return err
	case "--version", "-V":
		_, err := io.WriteString(tty.out, version.Line("gompictl"))
		return err
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		for _, a := range args[1:] {
			if a == "-h" || a == "--help" {
				_, err := io.WriteString(tty.out, c.help)
				return err
			}
		}
		return c.run(ctx, tty, args[1:])
	}
	return usagef("unknown command %q (try gompictl --help)", args[0])
}

// dial connects to the one job that the name selects.
func dial(ctx context.Context, name string) (*client.Tool, client.JobAddr, error) {
	j, err := find(name)
	if err != nil {
		return nil, j, err
	}
	t, err := client.DialTool(ctx, j.Addr)
	return t, j, err
}

const psHelp = `Usage: gompictl ps [-a]

Lists the running jobs of this host; root sees those of all users, others their own.

  -a   also count the processes that are kept ready for a change (gompirun --spare)
`

// ps writes a line for each job; a job may end at any moment. It asks all at once, so that
// a gompirun that is stopped does not use up the others' time.
func ps(ctx context.Context, tty terminal, args []string) error {
	all := slices.Equal(args, []string{"-a"})
	if len(args) != 0 && !all {
		return usagef("ps takes no arguments but -a")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	jobs, _, err := jobsOf(os.Geteuid(), client.Owner)
	if err != nil {
		return err
	}
	answers, errs := make([][]protocol.ProcInfo, len(jobs)), make([]error, len(jobs))
	var asked sync.WaitGroup
	for i, j := range jobs {
		asked.Go(func() { answers[i], errs[i] = processes(ctx, j.Addr) })
	}
	asked.Wait()
	w := tabwriter.NewWriter(tty.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tPROGRAM\tPROCESSES\tSTATES\tPIDS")
	for i, j := range jobs {
		if err := errs[i]; err != nil {
			fmt.Fprintf(w, "%016x\t-\t-\t%v\t\n", uint64(j.Job), unanswered(err))
			continue
		}
		live, pids := 0, []string{}
		states := map[protocol.ProcState]int{}
		for _, p := range answers[i] {
			if p.State == protocol.Spare && !all {
				continue
			}
			states[p.State]++
			if p.State != protocol.Exited {
				live++
				pids = append(pids, fmt.Sprint(p.PID))
			}
		}
		var st []string
		for s := protocol.Starting; s <= protocol.Spare; s++ {
			if states[s] > 0 {
				st = append(st, fmt.Sprintf("%d %v", states[s], s))
			}
		}
		const shown = 8
		if len(pids) > shown {
			pids = append(pids[:shown], "...")
		}
		fmt.Fprintf(w, "%016x\t%s\t%d\t%s\t%s\n", uint64(j.Job), program(pids), live, strings.Join(st, ", "), strings.Join(pids, " "))
	}
	return w.Flush()
}

// program returns the name of the first process that has one.
func program(pids []string) string {
	for _, pid := range pids {
		if name, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil {
			// A process chooses its name, which must not control the terminal.
			return strings.Map(func(r rune) rune {
				if !unicode.IsPrint(r) || r == ' ' {
					return -1
				}
				return r
			}, string(name))
		}
	}
	return "-"
}

// unanswered explains why a job does not answer.
func unanswered(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "does not answer: its gompirun is stopped or busy"
	}
	return err.Error()
}

func processes(ctx context.Context, addr string) ([]protocol.ProcInfo, error) {
	t, err := client.DialTool(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.Processes(ctx)
}

func stacks(ctx context.Context, tty terminal, args []string) error {
	if len(args) != 1 {
		return usagef("stacks needs one JOB (see gompictl ps)")
	}
	t, j, err := dial(ctx, args[0])
	if err != nil {
		return err
	}
	defer t.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	procs, err := t.Stacks(ctx, answerTimeout/2)
	if err != nil {
		return err
	}
	ops, err := t.Ops(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(tty.out, launcher.Report(fmt.Sprintf("job %016x", uint64(j.Job)), procs, ops))
	return err
}

// called reports whether a job's number begins with name.
func called(j client.JobAddr, name string) bool {
	return strings.HasPrefix(fmt.Sprintf("%016x", uint64(j.Job)), strings.ToLower(name))
}

// jobsOf returns the running jobs of this host that a user may see (root sees all), and
// the users of the other jobs.
func jobsOf(uid int, owner func(addr string) (uid int, err error)) (jobs []client.JobAddr, others map[client.JobAddr]int, err error) {
	all, err := client.Jobs()
	if err != nil {
		return nil, nil, err
	}
	others = map[client.JobAddr]int{}
	for _, j := range all {
		// A job that cannot be asked now is in the list with the reason.
		if of, err := owner(j.Addr); err == nil && of != uid && uid != 0 {
			others[j] = of
		} else {
			jobs = append(jobs, j)
		}
	}
	return jobs, others, nil
}

// find returns the one job whose number begins with name.
func find(name string) (client.JobAddr, error) {
	jobs, others, err := jobsOf(os.Geteuid(), client.Owner)
	if err != nil {
		return client.JobAddr{}, err
	}
	var found []client.JobAddr
	for _, j := range jobs {
		if called(j, name) {
			found = append(found, j)
		}
	}
	switch len(found) {
	case 0:
		for j, uid := range others {
			if called(j, name) {
				return client.JobAddr{}, fmt.Errorf("job %016x is of user %d, this is user %d", uint64(j.Job), uid, os.Geteuid())
			}
		}
		return client.JobAddr{}, fmt.Errorf("no running job %s (see gompictl ps)", name)
	case 1:
		return found[0], nil
	}
	return client.JobAddr{}, fmt.Errorf("%d jobs begin with %s", len(found), name)
}
