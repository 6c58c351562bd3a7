// SPDX-License-Identifier: Apache-2.0

package far

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// Input is the standard input of a job. Its processes on one host read it at a time;
// when it moves, what those of the last one were sent and have not read moves, too.
type Input struct {
	stdin *launch.Stdin

	mu      sync.Mutex
	at      *Host    // whose processes have it; nil: nobody has wanted it yet
	next    *Host    // whose are to have it, once at has returned what was not read
	back    [][]byte // what it has returned so far
	rest    [][]byte // what was read, and not sent
	size    int      // bytes of back
	reading bool
	ended   bool
}

// NewInput makes an Input of a file.
func NewInput(f *os.File) *Input { return &Input{stdin: launch.NewStdin(f)} }

// want: the agent of a host can take a piece.
func (in *Input) want(h *Host) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if h.wants {
		return errors.New("input is wanted twice")
	}
	h.wants = true
	if in.at == nil {
		in.at = h
	}
	in.serve()
	return nil
}

// serve sends a piece, or reads one, if somebody wants it; mu is held.
func (in *Input) serve() {
	h := in.at
	switch {
	case h == nil || in.next != nil || !h.wants:
	case len(in.rest) > 0:
		h.wants = false
		h.send(protocol.LaunchCommand{Kind: doInput, Data: in.rest[0]})
		in.rest = in.rest[1:]
	case in.ended:
		h.wants = false
		h.send(protocol.LaunchCommand{Kind: doInput})
	case !in.reading:
		in.reading = true
		go in.read()
	}
}

// read ends with gompirun: nothing interrupts it.
func (in *Input) read() {
	buf := make([]byte, protocol.MaxChunk)
	n, _ := in.stdin.Read(buf)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.reading = false
	if n > 0 {
		in.rest = append(in.rest, buf[:n]) // an error comes again
	} else {
		in.ended = true
	}
	in.serve()
}

// moveTo lets processes of a host read from now on.
func (in *Input) moveTo(h *Host) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.at == nil:
		in.at = h
	case in.next != nil:
		in.next = h
	case in.at == h:
	default:
		if in.next = h; in.at.gone {
			in.moved()
		} else {
			in.at.send(protocol.LaunchCommand{Kind: doReturn})
		}
	}
}

// returned takes what the agent of a host sends back; nothing: that was all.
func (in *Input) returned(h *Host, data []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.size += len(data); h != in.at || in.next == nil || in.size > window {
		return fmt.Errorf("%d bytes of input returned unasked", in.size)
	}
	if len(data) == 0 {
		in.moved()
	} else {
		in.back = append(in.back, slices.Clone(data))
	}
	return nil
}

// moved: all is back that comes back; mu is held.
func (in *Input) moved() {
	in.at.wants = false
	in.rest = append(in.back, in.rest...)
	in.back, in.size = nil, 0
	in.at, in.next = in.next, nil
	in.serve()
}

// lost: a host is gone, and with it what it was sent.
func (in *Input) lost(h *Host) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if h.gone = true; h == in.at && in.next != nil {
		in.moved()
	}
}
