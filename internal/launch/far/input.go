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

// Input is the standard input of a job. Processes of one host read it at a time. When it
// moves to another host, input that was sent but not read moves too.
type Input struct {
	stdin *launch.Stdin

	mu      sync.Mutex
	at      *Host    // the host that reads it; nil: no host has asked yet
	next    *Host    // the host that reads next, once at has returned unread input
	back    [][]byte // input that at has returned so far
	rest    [][]byte // input that was read but not sent
	size    int      // bytes in back
	reading bool
	ended   bool
}

// NewInput makes an Input of a file.
func NewInput(f *os.File) *Input { return &Input{stdin: launch.NewStdin(f)} }

// want handles a host's request for a piece.
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

// serve sends a piece, or reads one, if the host at has asked. The caller holds mu.
func (in *Input) serve() {
	h := in.at
	switch {
	case h == nil || in.next != nil || !h.wants:
	case len(in.rest) > 0:
		h.wants = false
		h.send(protocol.LaunchCommand{Kind: cmdInput, Data: in.rest[0]})
		in.rest = in.rest[1:]
	case in.ended:
		h.wants = false
		h.send(protocol.LaunchCommand{Kind: cmdInput})
	case !in.reading:
		in.reading = true
		go in.read()
	}
}

// read cannot be interrupted: it may run until gompirun ends.
func (in *Input) read() {
	buf := make([]byte, protocol.MaxChunk)
	n, _ := in.stdin.Read(buf)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.reading = false
	if n > 0 {
		in.rest = append(in.rest, buf[:n]) // the next Read returns the error again
	} else {
		in.ended = true
	}
	in.serve()
}

// moveTo moves the input to a host.
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
			in.at.send(protocol.LaunchCommand{Kind: cmdReturn})
		}
	}
}

// returned takes unread input from a host; an empty slice is the last.
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

// moved completes a move when all unread input is back. The caller holds mu.
func (in *Input) moved() {
	in.at.wants = false
	in.rest = append(in.back, in.rest...)
	in.back, in.size = nil, 0
	in.at, in.next = in.next, nil
	in.serve()
}

// lost handles the loss of a host; the input sent to it is lost too.
func (in *Input) lost(h *Host) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if h.gone = true; h == in.at && in.next != nil {
		in.moved()
	}
}
