// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/test/testlab"
)

// screenText is what a program has written to its terminal.
type screenText struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (s *screenText) read(master *os.File) {
	var b [4096]byte
	for {
		n, err := master.Read(b[:])
		if err != nil {
			return
		}
		s.mu.Lock()
		s.text.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
}

func (s *screenText) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

func (s *screenText) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// What shows a page in place of what a terminal showed, and that again.
const entersPage, leavesPage = "\x1b[?1049h", "\x1b[?1049l"

// modes are those of a terminal.
func modes(t *testing.T, tty *os.File) unix.Termios {
	m, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Error(err)
		return unix.Termios{}
	}
	return *m
}

// startTop starts gompictl top on a terminal of 100 x 24.
func startTop(ctx context.Context, t *testing.T, job string, tty *os.File) *exec.Cmd {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, "gompictl", "top", job)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// On a terminal the view is there until somebody quits, a signal comes or the job ends,
// and leaves the terminal as it was.
func TestTopOnTerminal(t *testing.T) {
	for what, end := range map[string]func(master *os.File, p *os.Process, stop func()){
		"q":       func(master *os.File, _ *os.Process, _ func()) { master.WriteString("q") },
		"^C":      func(master *os.File, _ *os.Process, _ func()) { master.WriteString("\x03") },
		"SIGTERM": func(_ *os.File, p *os.Process, _ func()) { p.Signal(unix.SIGTERM) },
		"the job": func(_ *os.File, _ *os.Process, stop func()) { stop() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			job, pids, stop := startJob(t)
			master, slave := testlab.Terminal(t)
			before := modes(t, slave)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := startTop(ctx, t, job, slave)
			ended := make(chan struct{})
			go func() {
				cmd.Wait()
				close(ended)
			}()
			s := &screenText{more: make(chan struct{}, 1)}
			go s.read(master)
			for !s.has(pids[0]) || !s.has(pids[1]) {
				select {
				case <-s.more:
				case <-ended:
					t.Fatalf("it has ended: %v, %q", cmd.ProcessState, s.all())
				}
			}
			end(master, cmd.Process, stop)
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("status %d: %q", code, s.all())
			}
			if after := modes(t, slave); after != before {
				t.Errorf("the terminal was %+v, is %+v", before, after)
			}
			for !s.has(leavesPage) {
				select {
				case <-s.more:
				case <-ctx.Done():
					t.Fatalf("it still shows the page: %q", s.all())
				}
			}
		})
	}
}

// A signal may come at any moment: before the terminal is asked what it is, while it is
// asked, which lasts a second if it does not answer, with a page, while the job is asked.
func TestTopEndsAtAnyMoment(t *testing.T) {
	const moments, apart = 24, 60 * time.Millisecond
	job, _, _ := startJob(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range moments {
		master, slave := testlab.Terminal(t)
		before := modes(t, slave)
		s := &screenText{more: make(chan struct{}, 1)}
		go s.read(master)
		cmd := startTop(ctx, t, job, slave)
		time.AfterFunc(time.Duration(i)*apart, func() { cmd.Process.Signal(unix.SIGTERM) })
		all.Go(func() {
			cmd.Wait()
			// It has no say before its first instruction.
			unborn := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == unix.SIGTERM && s.all() == ""
			if !cmd.ProcessState.Success() && !unborn {
				t.Errorf("TERM after %v: %v, %q", time.Duration(i)*apart, cmd.ProcessState, s.all())
			}
			if after := modes(t, slave); after != before {
				t.Errorf("TERM after %v: the terminal was %+v, is %+v", time.Duration(i)*apart, before, after)
			}
			for s.has(entersPage) && !s.has(leavesPage) {
				select {
				case <-s.more:
				case <-ctx.Done():
					t.Errorf("TERM after %v: it still shows the page: %q", time.Duration(i)*apart, s.all())
					return
				}
			}
		})
	}
	all.Wait()
}
