// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gompi/bench/redist"
	"gompi/bench/report"
)

// silenceLimit is how long a job may print nothing before it counts as hanging.
const silenceLimit = 3 * time.Minute

// matrix measures all ordered pairs of --pairs, each in jobs of its own, and appends
// results to --into. Results that are there already are not measured again.
func (c *redistCommand) matrix() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done, err := readResults([]string{c.into})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	jobs := redist.Plan(c.pairs, redist.Methods(c.opt.Variants), c.opt.Bytes, done)
	if len(jobs) == 0 {
		fmt.Fprintln(os.Stderr, "gompibench: redist: all is in", c.into)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	run, err := find("gompirun")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.into, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	keep := func(rs []report.Result) error {
		var b bytes.Buffer
		for _, r := range rs {
			if err := report.Write(&b, r); err != nil {
				return err
			}
		}
		if _, err := f.Write(b.Bytes()); err != nil {
			return err
		}
		return errors.Join(f.Sync(), report.RedistTable(c.out, rs))
	}
	last := time.Time{}
	tell := func(done, left time.Duration, what string) {
		if time.Since(last) < time.Second && left > 0 {
			return
		}
		last = time.Now()
		rest := "time left not known yet"
		if left > 0 {
			rest = "about " + left.Round(time.Second).String() + " left"
		}
		fmt.Fprintf(os.Stderr, "gompibench: redist: %s; %v, %s\n", what, done.Round(time.Second), rest)
	}
	one := func(ctx context.Context, j redist.Job, told func(float64, string)) ([]report.Result, error) {
		argv := append([]string{"-np", strconv.Itoa(j.From), self, "redist", "--json", "--progress"}, c.jobArgs(j)...)
		return runJob(ctx, exec.Command(run, argv...), told)
	}
	err = redist.Matrix(ctx, jobs, one, keep, tell)
	return errors.Join(err, f.Close())
}

// jobArgs returns the arguments of a job of the matrix.
func (c *redistCommand) jobArgs(j redist.Job) []string {
	var methods []string
	for _, m := range j.Methods {
		methods = append(methods, m.String())
	}
	return []string{
		"--from", strconv.Itoa(j.From), "--to", strconv.Itoa(j.To), "--mib", strconv.FormatFloat(c.mib, 'g', -1, 64),
		"--methods", strings.Join(methods, ","), "--strategies", c.strategies, "--rounds", strconv.Itoa(c.opt.Rounds),
		"--iteration", c.opt.Iteration.String(), "--transport", c.opt.Transport,
	}
}

// runJob runs a job of the laboratory in a process group of its own. It ends the job when
// ctx ends, and when it prints nothing for silenceLimit. Lines on stderr that are no
// progress are passed on.
func runJob(ctx context.Context, cmd *exec.Cmd, told func(part float64, what string)) ([]report.Result, error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Env = append(os.Environ(), envLaunched+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	words := make(chan string)
	go func() {
		defer close(words)
		s := bufio.NewScanner(errs)
		for s.Scan() {
			words <- s.Text()
		}
		_, _ = io.Copy(io.Discard, errs) // the rest of a line that is too long
	}()
	kill := func(s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
	var why error
	over := ctx.Done()
	clock := time.NewTimer(silenceLimit)
	defer clock.Stop()
	for words != nil {
		select {
		case line, ok := <-words:
			if !ok {
				words = nil
				break
			}
			if part, what, ok := progressOf(line); ok {
				told(part, what)
			} else {
				fmt.Fprintln(os.Stderr, line)
			}
			if why == nil {
				clock.Reset(silenceLimit)
			}
		case <-over:
			why, over = context.Cause(ctx), nil
			kill(syscall.SIGTERM)
			clock.Reset(5 * time.Second)
		case <-clock.C:
			if why != nil {
				kill(syscall.SIGKILL)
				break
			}
			why = fmt.Errorf("nothing heard for %v", silenceLimit)
			kill(syscall.SIGTERM)
			clock.Reset(5 * time.Second)
		}
	}
	err = cmd.Wait()
	kill(syscall.SIGKILL) // processes that it has left behind
	if err = errors.Join(why, err); err != nil {
		return nil, err
	}
	return report.Read(cmd.Path, &out)
}

const progressLine = "gompibench: redist %d->%d: %d of %d, "

// progressOf reads a line of progress.
func progressOf(line string) (part float64, what string, ok bool) {
	var from, to, done, all int
	if n, _ := fmt.Sscanf(line, progressLine, &from, &to, &done, &all); n != 4 || done < 0 || all < 1 {
		return 0, "", false
	}
	_, what, _ = strings.Cut(line, ", ")
	return min(float64(done)/float64(all), 1), what, true
}

// readResults returns the results of files, in order.
func readResults(names []string) (all []report.Result, err error) {
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		rs, err := report.Read(name, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all = append(all, rs...)
	}
	return all, nil
}
