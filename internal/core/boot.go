// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"

	"gompi/internal/control"
	"gompi/internal/engine"
	"gompi/internal/knob"
	"gompi/internal/rollcall"
	"gompi/internal/wait"
	"gompi/internal/wire"
	"gompi/transport"
)

// Control is the control plane of one process: control.Client, or a stand-in
// for a process that is alone.
type Control interface {
	engine.Control
	Announce(addrs []string) error
	Lookup(uri string) (wire.Set, error)
	DefineSet(m wire.Members) (wire.Set, error)
	ReleaseSet(number uint32) error
	Put(key string, val []byte) error
	Get(ctx context.Context, key string, wait bool) ([]byte, error)
	Delete(key string) error
	Spawn(ctx context.Context, argv []string, n int) (wire.Set, error)
	Abort(code int, msg string) error
	Finalize() error
	Next() (control.Event, error)
	Stacks(id uint64, queues, stacks []byte) error
	Close() error
}

// Boot is what a process is made of. Init fills it for a program under
// gompirun, package mpitest for ranks that are goroutines.
type Boot struct {
	Control    Control
	Welcome    *control.Welcome
	Transports []transport.Transport
	Sleeper    wait.Sleeper
	Policy     wait.Policy
	Book       *rollcall.Book
	// Lost is called when the control plane is lost or the job is being
	// ended; nil: only the process's context ends.
	Lost func(why error)
}

// Setting reads a knob: the head's value.
func (b *Boot) Setting(name string) string { return b.Welcome.Settings[name] }

// Number reads a knob that is a number, 0 if unset.
func (b *Boot) Number(r knob.Range) (int64, error) {
	n, err := r.Setting(b.Setting, 0)
	if err != nil {
		return 0, fmt.Errorf("gompi: %w", err)
	}
	return n, nil
}
