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

	"gompi/internal/testlab"
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
			if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
				t.Fatal(err)
			}
			before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, "gompictl", "top", job)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.Env = append(os.Environ(), "TERM=xterm-256color")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
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
					t.Fatalf("it has ended: %v, %q", cmd.ProcessState, s.text.String())
				}
			}
			end(master, cmd.Process, stop)
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("status %d", code)
			}
			if after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS); err != nil || *after != *before {
				t.Errorf("the terminal was %+v, is %+v (%v)", before, after, err)
			}
			for !s.has("\x1b[?1049l") {
				select {
				case <-s.more:
				case <-ctx.Done():
					t.Fatalf("it still shows the page: %q", s.text.String())
				}
			}
		})
	}
}
