// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// Launched reports whether the process has a launcher, whose job it joins once.
func (p *Process) Launched() bool {
	_, nobody := p.Control.(*alone)
	return !nobody
}

// alone is the control plane of a process that nobody launched.
type alone struct {
	mu     sync.Mutex
	world  wire.Set
	next   uint32
	store  map[string][]byte
	sets   map[uint32]*aloneSet
	pongs  chan protocol.Event
	closed chan struct{}
	once   sync.Once
}

func newAlone(world wire.Set) *alone {
	return &alone{
		world: world, next: world.Number + 1, store: map[string][]byte{},
		sets:  map[uint32]*aloneSet{world.Number: {vals: map[string][]byte{}}},
		pongs: make(chan protocol.Event), closed: make(chan struct{}),
	}
}

var errAlone = errors.New("there is no launcher: start the program with gompirun")

func (a *alone) Contact(p wire.ProcID) (wire.Contact, error) {
	return wire.Contact{}, fmt.Errorf("process %v: %w", p, errAlone)
}
func (a *alone) Watch(wire.Members) error { return nil }
func (a *alone) Dead(wire.ProcID) error   { return nil }

func (a *alone) Common(wire.ContextID, wire.Members, int, int, uint64) (wire.ArenaRange, error) {
	return wire.ArenaRange{}, errAlone
}
func (a *alone) LeaveCommon(wire.ArenaRange) error { return nil }

func (a *alone) Cut(wire.ProcID, string) error { return nil }

// Ping is of this process, and answered at once: nobody else is there.
func (a *alone) Ping(p wire.ProcID, id uint64) error {
	go func() {
		select {
		case a.pongs <- protocol.Event{Kind: protocol.EvPong, Proc: p, ID: id}:
		case <-a.closed:
		}
	}()
	return nil
}
func (a *alone) Pong(wire.ProcID, uint64) error { return nil }
func (a *alone) Announce([]string) error        { return nil }

func (a *alone) Lookup(uri string) (wire.Set, error) {
	switch uri {
	case "mpi://WORLD", "mpi://SELF":
		return a.world, nil
	}
	return wire.Set{}, fmt.Errorf("process set %q: %w", uri, errAlone)
}

func (a *alone) DefineSet(m wire.Members) (wire.Set, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, _ := a.add()
	return wire.Set{URI: protocol.SetURI(a.world.Members.At(0).Job, n), Number: n, Members: m}, nil
}

func (a *alone) ReleaseSet(n uint32) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.release(n)
	return nil
}

func (a *alone) Put(key string, val []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store[key] = append([]byte(nil), val...)
	return nil
}

// Get with wait for a key that nobody else could put would wait for ever; only
// goroutines of this process can, so it is an error at once.
func (a *alone) Get(_ context.Context, key string, _ bool) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.store[key]
	if !ok {
		return nil, fmt.Errorf("key %q: %w", key, errAlone)
	}
	return append([]byte(nil), v...), nil
}

func (a *alone) Delete(key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.store[key]; !ok {
		return fmt.Errorf("key %q: %w", key, errAlone)
	}
	delete(a.store, key)
	return nil
}

func (a *alone) SpawnAll(context.Context, *protocol.Spawn) (protocol.SpawnBody, error) {
	return protocol.SpawnBody{}, errAlone
}

func (a *alone) Abort(code int, _ string) error {
	os.Exit(abortStatus(code))
	return nil
}

// AskFiles answers who watches the only set: the page is the caller's own, as is memory of
// the host.
func (a *alone) AskFiles(_ context.Context, m, body protocol.Message) ([protocol.FrameFDs]int, error) {
	none := [protocol.FrameFDs]int{-1, -1}
	switch m := m.(type) {
	case *protocol.Subscribe:
		*body.(*protocol.PageBody) = protocol.PageBody{Members: 1}
		return none, nil
	case *protocol.Memory:
		fd, n, err := segment.CreateArena(m.Bytes)
		if err != nil {
			return none, err
		}
		*body.(*protocol.MemoryBody) = protocol.MemoryBody{Name: m.Name, Bytes: n}
		return [protocol.FrameFDs]int{fd, -1}, nil
	}
	return none, errAlone
}

func (a *alone) Finalize() error { return nil }

func (a *alone) Next() (protocol.Event, error) {
	select {
	case ev := <-a.pongs:
		return ev, nil
	case <-a.closed:
		return protocol.Event{}, errAlone
	}
}

func (a *alone) Stacks(protocol.Stacks) error { return nil }

func (a *alone) Close() error {
	a.once.Do(func() { close(a.closed) })
	return nil
}
