// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
)

// stdinKind is the kind of a process's descriptor 0.
type stdinKind uint8

const (
	stdinNull stdinKind = iota
	stdinOurs           // gompirun's own
	stdinFed            // a pipe
)

// stdinOf returns the kind of standard input of a process.
func (sp *Spawner) stdinOf(s *launch.Start) stdinKind {
	switch {
	case !s.First || sp.o.Stdin != launch.StdinAll && sp.o.Stdin != launch.StdinTo(s.Rank):
		return stdinNull
	case sp.o.Stdin != launch.StdinAll && sp.stdin != nil && !isTerminal(os.Stdin):
		sp.reader, sp.readEnd = s.Proc, 0
		return stdinOurs // gompirun's own descriptor is the fastest and most exact input
	}
	if sp.feeder == nil {
		sp.feeder = newFeeder(sp.in)
	}
	return stdinFed
}

// streams sets the standard descriptors of a process. The caller closes ours after the
// fork, and on an error too. It runs on the forking thread.
func (sp *Spawner) streams(c *launch.Start, s *spec, n *forkedChild) (ours []int, err error) {
	s.files = [3]int{int(sp.null.Fd()), -1, -1}
	switch s.stdin {
	case stdinOurs:
		s.files[0] = 0
	case stdinFed:
		fd, err := sp.feeder.pipe()
		if err != nil {
			return ours, err
		}
		s.files[0] = fd
		if sp.o.Stdin != launch.StdinAll {
			n.readEnd = fd // kept for the process that reads later
		} else {
			ours = append(ours, fd)
		}
	}
	for i, name := range [2]string{"stdout", "stderr"} {
		var file *outlet
		if sp.o.OutputDir != "" {
			file = &outlet{name: filepath.Join(sp.o.OutputDir, c.OutputFile(name))}
			if file.fd, err = unix.Open(file.name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_APPEND|unix.O_CLOEXEC, 0o666); err != nil {
				return ours, fmt.Errorf("%s: %w", file.name, err)
			}
		}
		src, fd, err := outputPipe(sp.outputs[i], s.tag, file)
		if err != nil {
			return ours, err
		}
		if i == 0 {
			n.out = src
		} else {
			n.err = src
		}
		ours = append(ours, fd)
		s.files[i+1] = fd
	}
	return ours, nil
}

func outputPipe(to *pump, tag string, file *outlet) (src *source, writeEnd int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		if file != nil {
			unix.Close(file.fd)
		}
		return nil, -1, fmt.Errorf("pipe: %w", err)
	}
	unix.SetNonblock(fds[0], true)
	if src, err = to.add(fds[0], tag, file); err != nil {
		unix.Close(fds[1])
		return nil, -1, err
	}
	return src, fds[1], nil
}
