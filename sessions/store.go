// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/control"
	"gompi/mpi"
)

// Store is what processes have put into a set for each other: values by keys. It
// lives as long as the set. Who knows the set may use it; that of a newcomer's set can
// be written before the newcomer looks. Safe for all goroutines.
type Store struct {
	s    *Session
	h    *held
	name string
}

// Store is the store of a set. It may be used until Close. Local.
func (s *Session) Store(name string) (_ *Store, err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name = canonical(name); name == control.EmptyURI {
		if err := s.open("Store"); err != nil {
			return nil, err
		}
		return nil, s.fail(mpi.ErrSet, "Store", errors.New("the empty set has no store"))
	}
	h, err := s.find("Store", name)
	if err != nil {
		return nil, err
	}
	return &Store{s, h, name}, nil
}

// Limits of a store: the longest key and value, in bytes, and how many keys one Get
// asks for.
const (
	MaxKey   = control.MaxKey
	MaxValue = control.MaxValue
	MaxKeys  = control.MaxKeys
)

const (
	opPut    calls.Name = "Store.Put"
	opGet    calls.Name = "Store.Get"
	opGetAll calls.Name = "Store.GetAll"
)

// Put stores a value; an older one is replaced. On return it is there. val may be
// reused then.
func (t *Store) Put(key string, val []byte) (err error) {
	defer t.s.raise(&err)
	if key == "" || len(key) > MaxKey || len(val) > MaxValue {
		return t.s.fail(mpi.ErrArg, string(opPut), fmt.Errorf("key of %d bytes (1 to %d) with value of %d bytes (at most %d)", len(key), MaxKey, len(val), MaxValue))
	}
	if err := t.usable(opPut); err != nil {
		return err
	}
	m := &control.SetPut{Set: t.h.set.Number, Put: control.Put{Key: key, Val: val}}
	return t.ask(t.s.ctx, opPut, m, &control.Empty{Kind: control.KindReply})
}

// Get returns the values of keys, nil for one that nobody has put; the caller owns
// them. With wait it returns when all are there, or with an error when ctx ends, the
// set is gone, or no other process is left that could put them.
func (t *Store) Get(ctx context.Context, wait bool, keys ...string) ([][]byte, error) {
	return t.get(ctx, opGet, wait, 0, keys)
}

// GetAll is Get by all members of the set, with the same keys: what the first of them
// is answered all are. The k-th call of each member belongs to that of the
// others. Collective over the set; without wait nobody waits for another.
func (t *Store) GetAll(ctx context.Context, wait bool, keys ...string) ([][]byte, error) {
	if t.h.set.Members.Index(t.s.process().Self) < 0 {
		return nil, t.s.raised(mpi.ErrRank, string(opGetAll), fmt.Errorf("the calling process is not in the set %s", t.name))
	}
	return t.get(ctx, opGetAll, wait, t.h.call(), keys)
}

// call numbers a collective call.
func (h *held) call() uint64 {
	h.turn.Lock()
	defer h.turn.Unlock()
	h.had.Calls++
	return h.had.Calls
}

func (t *Store) get(ctx context.Context, op calls.Name, wait bool, call uint64, keys []string) (_ [][]byte, err error) {
	defer t.s.raise(&err)
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, t.s.fail(mpi.ErrArg, string(op), fmt.Errorf("%d keys, 1 to %d allowed", len(keys), MaxKeys))
	}
	for _, k := range keys {
		if k == "" || len(k) > MaxKey {
			return nil, t.s.fail(mpi.ErrArg, string(op), fmt.Errorf("key of %d bytes (1 to %d)", len(k), MaxKey))
		}
	}
	if err := t.usable(op); err != nil {
		return nil, err
	}
	var b control.ValuesBody
	m := &control.SetGet{Set: t.h.set.Number, Keys: keys, Wait: wait, Call: call}
	if err := t.ask(ctx, op, m, &b); err != nil {
		return nil, err
	}
	if len(b.Values) != len(keys) {
		return nil, t.s.fail(mpi.ErrUnreachable, string(op), fmt.Errorf("%d values of %d keys", len(b.Values), len(keys)))
	}
	vals := make([][]byte, len(keys))
	for i, v := range b.Values {
		if v.There {
			vals[i] = append([]byte{}, v.Val...)
		}
	}
	return vals, nil
}

func (t *Store) usable(op calls.Name) error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.s.open(string(op))
}

func (t *Store) ask(ctx context.Context, op calls.Name, m, body control.Message) error {
	if err := t.s.process().Control.Ask(ctx, m, body); err != nil {
		return t.s.fail(classOf(err), string(op), fmt.Errorf("%s: %w", t.name, err))
	}
	return nil
}

// IPut starts a Put. val may be reused when the request is complete: the value is
// there then.
func (t *Store) IPut(key string, val []byte) mpi.Request {
	return t.s.start(opPut, func() error { return t.Put(key, val) })
}

// IGet starts a Get: the values are there when the request is complete.
func (t *Store) IGet(ctx context.Context, wait bool, keys ...string) (*[][]byte, mpi.Request) {
	vals := new([][]byte)
	return vals, t.s.start(opGet, func() (err error) {
		*vals, err = t.Get(ctx, wait, keys...)
		return err
	})
}

// IGetAll starts a GetAll: the values are there when the request is complete. It
// counts when it is started.
func (t *Store) IGetAll(ctx context.Context, wait bool, keys ...string) (*[][]byte, mpi.Request) {
	vals := new([][]byte)
	call := t.h.call()
	return vals, t.s.start(opGetAll, func() (err error) {
		*vals, err = t.get(ctx, opGetAll, wait, call, keys)
		return err
	})
}

// start does something as a request.
func (s *Session) start(op calls.Name, f func() error) mpi.Request { return start(s.proc, op, f) }

func start(p *mpi.Process, op calls.Name, f func() error) (r mpi.Request) {
	*r.Core() = p.Core().Beside(op, f)
	return r
}
