// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/protocol"
	"gompi/internal/host/wait"
	"gompi/transport"
	"gompi/transport/inproc"
)

// Place is where a process lives. The zero Place is that of a process of the
// operating system.
type Place struct {
	// Transports are the names of those that it uses, the preferred one first,
	// with commas between them; "" is the default.
	Transports string
	// Hub: it is a goroutine, and meets others over the transport inproc here.
	Hub *inproc.Hub
	// Book is the memory of its roll call; nil: the page of its segment, if it
	// has one.
	Book []byte
	// Wrap puts something between engine and transport; nil: nothing.
	Wrap func(t transport.Transport, self wire.ProcID, wake func()) (transport.Transport, error)
}

// Open opens what a process needs that the job has welcomed: a place to sleep,
// its page in the roll call, its transports.
func Open(ctl Control, w *protocol.Welcome, at Place) (Boot, error) {
	b := Boot{Control: ctl, Welcome: w, Policy: wait.ForGoroutine()}
	if at.Hub == nil {
		b.Policy = b.waitPolicy(w.LocalProcs)
	}
	var err error
	if at.Transports == "inproc" {
		b.Sleeper = wait.NewChan()
	} else if b.Sleeper, err = wait.NewEpoll(); err != nil {
		return Boot{}, fmt.Errorf("gompi: %w", err)
	}
	if b.Book, err = at.book(w); err != nil {
		return Boot{}, fmt.Errorf("gompi: roll call: %w", err)
	}
	if err := b.openTransports(at); err != nil {
		return Boot{}, fmt.Errorf("gompi: %w", err)
	}
	return b, nil
}

func (at *Place) book(w *protocol.Welcome) (*callreg.Registry, error) {
	mem := at.Book
	if mem == nil {
		if w.Segment < 0 {
			return nil, nil
		}
		var err error
		if mem, err = page(w); err != nil {
			return nil, err
		}
	}
	return callreg.Open(mem)
}
