// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// Stdin is gompirun's standard input, read only in the foreground: in the
// background, reading the terminal would stop gompirun.
type Stdin struct {
	file    *os.File
	resumed chan struct{} // gompirun was continued (SIGCONT)
}

// NewStdin makes a Stdin of a file. One goroutine reads.
func NewStdin(f *os.File) *Stdin { return &Stdin{file: f, resumed: make(chan struct{}, 1)} }

func (s *Stdin) Read(b []byte) (int, error) {
	for !inForeground(s.file) {
		<-s.resumed
	}
	return s.file.Read(b)
}

// Resume is called after SIGCONT.
func (s *Stdin) Resume() {
	select {
	case s.resumed <- struct{}{}:
	default:
	}
}

// inForeground is false when f is our terminal and another job has it.
func inForeground(f *os.File) bool {
	pgrp, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || pgrp == unix.Getpgrp()
}
