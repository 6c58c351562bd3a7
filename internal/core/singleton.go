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
	_, nobody := p.Control.(*singleton)
	return !nobody
}

// singleton is the control plane of a process without a launcher: it knows one process.
type singleton struct {
	mu     sync.Mutex
	world  wire.Set
	next   uint32
	store  map[string][]byte
	sets   map[uint32]*singletonSet
	pongs  chan protocol.Event
	closed chan struct{}
	once   sync.Once
}

func newSingleton(world wire.Set) *singleton {
	return &singleton{
		world: world, next: world.Number + 1, store: map[string][]byte{},
		sets:  map[uint32]*singletonSet{world.Number: {vals: map[string][]byte{}}},
		pongs: make(chan protocol.Event), closed: make(chan struct{}),
	}
}

var errSingleton = errors.New("there is no launcher: start the program with gompirun")

func (a *singleton) Contact(p wire.ProcID) (wire.Contact, error) {
	return wire.Contact{}, fmt.Errorf("process %v: %w", p, errSingleton)
}
func (a *singleton) Watch(wire.Members) error { return nil }
func (a *singleton) Dead(wire.ProcID) error   { return nil }

func (a *singleton) Common(wire.ContextID, wire.Members, int, int, uint64) (wire.ArenaRange, error) {
	return wire.ArenaRange{}, errSingleton
}
func (a *singleton) LeaveCommon(wire.ArenaRange) error { return nil }

func (a *singleton) Cut(wire.ProcID, string) error { return nil }

// Ping is of this process, and answered at once: nobody else is there.
func (a *singleton) Ping(p wire.ProcID, id uint64) error {
	go func() {
		select {
		case a.pongs <- protocol.Event{Kind: protocol.EvPong, Proc: p, ID: id}:
		case <-a.closed:
		}
	}()
	return nil
}
func (a *singleton) Pong(wire.ProcID, uint64) error { return nil }
func (a *singleton) Announce([]string) error        { return nil }

func (a *singleton) Lookup(uri string) (wire.Set, error) {
	switch uri {
	case "mpi://WORLD", "mpi://SELF":
		return a.world, nil
	}
	return wire.Set{}, fmt.Errorf("process set %q: %w", uri, errSingleton)
}

func (a *singleton) DefineSet(m wire.Members) (wire.Set, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, _ := a.add()
	return wire.Set{URI: protocol.SetURI(a.world.Members.At(0).Job, n), Number: n, Members: m}, nil
}

func (a *singleton) ReleaseSet(n uint32) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.release(n)
	return nil
}

func (a *singleton) Put(key string, val []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store[key] = append([]byte(nil), val...)
	return nil
}

// Get with wait for a key that nobody else could put would wait for ever; only
// goroutines of this process can, so it is an error at once.
func (a *singleton) Get(_ context.Context, key string, _ bool) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.store[key]
	if !ok {
		return nil, fmt.Errorf("key %q: %w", key, errSingleton)
	}
	return append([]byte(nil), v...), nil
}

func (a *singleton) Delete(key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.store[key]; !ok {
		return fmt.Errorf("key %q: %w", key, errSingleton)
	}
	delete(a.store, key)
	return nil
}

func (a *singleton) SpawnAll(context.Context, *protocol.Spawn) (protocol.SpawnBody, error) {
	return protocol.SpawnBody{}, errSingleton
}

func (a *singleton) Abort(code int, _ string) error {
	os.Exit(abortStatus(code))
	return nil
}

// AskFiles answers who watches the only set: the page is the caller's own, as is memory of
// the host.
func (a *singleton) AskFiles(_ context.Context, m, body protocol.Message) ([protocol.FrameFDs]int, error) {
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
	return none, errSingleton
}

func (a *singleton) Finalize() error { return nil }

func (a *singleton) Next() (protocol.Event, error) {
	select {
	case ev := <-a.pongs:
		return ev, nil
	case <-a.closed:
		return protocol.Event{}, errSingleton
	}
}

func (a *singleton) Stacks(protocol.Stacks) error { return nil }

func (a *singleton) Close() error {
	a.once.Do(func() { close(a.closed) })
	return nil
}
