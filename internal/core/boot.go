// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"runtime"

	"gompi/collectives/selection"
	"gompi/internal/base/settings"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/protocol"
	"gompi/internal/engine"
	"gompi/internal/host/wait"
	"gompi/transport"
)

// Control is the control plane of one process: a client.Client, or that of a singleton,
// a process without a launcher.
type Control interface {
	engine.Control
	Announce(addrs []string) error
	Lookup(uri string) (wire.Set, error)
	DefineSet(m wire.Members) (wire.Set, error)
	ReleaseSet(number uint32) error
	Put(key string, val []byte) error
	Get(ctx context.Context, key string, wait bool) ([]byte, error)
	Delete(key string) error
	SpawnAll(ctx context.Context, m *protocol.Spawn) (protocol.SpawnBody, error)
	Abort(code int, msg string) error
	Finalize() error
	Next() (protocol.Event, error)
	Stacks(m protocol.Stacks) error
	// Ask, AskFiles, Tell and Say say what has no method of its own: process sets and
	// their changes, and the end of the process.
	Ask(ctx context.Context, m, body protocol.Message) error
	AskFiles(ctx context.Context, m, body protocol.Message) (fds [protocol.FrameFDs]int, err error)
	Tell(m protocol.Message) error
	Say(m protocol.Message) error
	Close() error
}

// Boot is what a process is made of: by Join for a program, by Open for ranks
// that are goroutines.
type Boot struct {
	Control    Control
	Welcome    *protocol.Welcome
	Transports []transport.Transport
	Sleeper    wait.Sleeper
	Policy     wait.Policy
	Book       *callreg.Registry
	SayLeft    func(line string) // says what GOMPI_CHECK finds left at the end; nil: it goes to standard error
	Calls      *CallTable        // with which the calls of ranks are compared; nil: they are not
	// Lost is called when the control plane is lost or the job is being
	// ended; nil: only the process's context ends.
	Lost func(why error)

	otherJobs *otherJobs // nil: the process is a singleton
}

// Setting reads a knob: the head's value.
func (b *Boot) Setting(name string) string { return b.Welcome.Settings[name] }

// Number reads a knob that is a number, 0 if unset.
func (b *Boot) Number(r settings.Range) (int64, error) {
	n, err := r.Lookup(b.Setting, 0)
	if err != nil {
		return 0, fmt.Errorf("gompi: %w", err)
	}
	return n, nil
}

// Table is how collective calls select their algorithms. The head gives the
// rules, not the name of their file.
func (b *Boot) Table() (*selection.Table, error) {
	t, err := selection.ParseTable(b.Setting("GOMPI_COLL_TABLE"))
	if err != nil {
		return nil, fmt.Errorf("gompi: GOMPI_COLL_TABLE: %w", err)
	}
	if err := t.ForceAll(b.Setting("GOMPI_COLL")); err != nil {
		return nil, fmt.Errorf("gompi: GOMPI_COLL: %w", err)
	}
	return t, nil
}

// waitPolicy returns how an OS process waits that is one of local on its host.
func (b *Boot) waitPolicy(local int) wait.Policy {
	p := wait.ForOS(local, b.Welcome.UsableCPUs)
	if n, err := b.Number(settings.Spin); err == nil && n > 0 {
		p.Spin = int(n)
	}
	// This one may be bound to a single CPU.
	async := b.Setting("GOMPI_ASYNC")
	p.Spare = (p.Spare || async == "1") && async != "0" && runtime.NumCPU() > 1
	return p
}

// Joined says how this process waits from now on, as so many are on the host; false:
// as before, it is a goroutine.
func (b *Boot) Joined(ev protocol.Event) (wait.Policy, bool) {
	if !b.Policy.OS {
		return wait.Policy{}, false
	}
	return b.waitPolicy(ev.LocalProcs), true
}
