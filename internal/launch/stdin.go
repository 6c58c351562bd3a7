// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// Stdin is gompirun's standard input. It is read in the foreground only: a read of the
// terminal would stop a gompirun in the background.
type Stdin struct {
	file    *os.File
	resumed chan struct{} // gompirun was continued (SIGCONT)
}

// NewStdin makes a Stdin of a file. One goroutine may read it.
func NewStdin(f *os.File) *Stdin { return &Stdin{file: f, resumed: make(chan struct{}, 1)} }

func (s *Stdin) Read(b []byte) (int, error) {
	for !inForeground(s.file) {
		<-s.resumed
	}
	return s.file.Read(b)
}

// Resume must be called after SIGCONT.
func (s *Stdin) Resume() {
	select {
	case s.resumed <- struct{}{}:
	default:
	}
}

// inForeground reports whether f is no terminal of ours, or we are its foreground job.
func inForeground(f *os.File) bool {
	pgrp, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || pgrp == unix.Getpgrp()
}
