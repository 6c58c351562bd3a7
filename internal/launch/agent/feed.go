// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// feeder forwards standard input to the processes that get it, as fast as the
// slowest of them reads.
type feeder struct {
	src     io.Reader
	targets []*os.File // write ends of pipes
}

// pipe adds a target and returns the read end for the process. Before run.
func (f *feeder) pipe() (readEnd int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, os.NewSyscallError("pipe", err)
	}
	// Only a non-blocking descriptor goes through the netpoller, where Close
	// interrupts a Write.
	unix.SetNonblock(p[1], true)
	f.targets = append(f.targets, os.NewFile(uintptr(p[1]), "stdin of a rank"))
	return p[0], nil
}

// run ends at the end of input or when no target reads any more.
func (f *feeder) run() {
	defer func() {
		for _, t := range f.targets {
			t.Close()
		}
	}()
	buf := make([]byte, chunkBytes)
	for len(f.targets) > 0 {
		n, err := f.src.Read(buf)
		alive := f.targets[:0]
		for _, t := range f.targets {
			if _, werr := t.Write(buf[:n]); werr != nil {
				t.Close()
				continue
			}
			alive = append(alive, t)
		}
		f.targets = alive
		if err != nil {
			return
		}
	}
}

// isTerminal also tells gompirun whether it may hand its standard input to a
// rank as it is.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
