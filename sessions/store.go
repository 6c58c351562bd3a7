// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/control/protocol"
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
	if name = canonical(name); name == protocol.EmptyURI {
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
	MaxKey   = protocol.MaxKey
	MaxValue = protocol.MaxValue
	MaxKeys  = protocol.MaxKeys
)

const (
	opPut    fault.Call = "Store.Put"
	opGet    fault.Call = "Store.Get"
	opGetAll fault.Call = "Store.GetAll"
	opGetBy  fault.Call = "Store.GetBy"
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
	m := &protocol.SetPut{Set: t.h.set.Number, Put: protocol.Put{Key: key, Val: val}}
	return t.ask(t.s.ctx, opPut, m, &protocol.Empty{Kind: protocol.KindReply})
}

// Get returns the values of keys, nil for one that nobody has put; the caller owns
// them. With wait it returns when all are there, or with an error when ctx ends, the
// set is gone, no other process is left that could put them, or the change is rolled
// back of which the set came (ErrRolledBack).
func (t *Store) Get(ctx context.Context, wait bool, keys ...string) ([][]byte, error) {
	if err := t.askable(ctx, opGet, keys); err != nil {
		return nil, err
	}
	return t.get(ctx, opGet, wait, collective{}, keys)
}

// GetAll is Get by all members of the set, with the same keys: what the first of them
// is answered all are. The k-th call of each member belongs to that of the
// others. Collective over the set; without wait nobody waits for another.
func (t *Store) GetAll(ctx context.Context, wait bool, keys ...string) ([][]byte, error) {
	call, err := t.all(ctx, opGetAll, keys)
	if err != nil {
		return nil, err
	}
	return t.get(ctx, opGetAll, wait, call, keys)
}

// GetBy is Get by all members of another set, coll, with the same store and keys, as
// GetAll is by those of this one; "mpi://SELF" is Get. What the members of a set call
// of GetBy and GetAll, whichever stores they ask, counts together, and is called in the
// same order by all of them. Collective over coll; without wait nobody waits for
// another.
//
// MPI_Session_get_pset_data of the DPP prototype.
func (t *Store) GetBy(ctx context.Context, coll string, wait bool, keys ...string) ([][]byte, error) {
	call, err := t.by(ctx, coll, keys)
	if err != nil {
		return nil, err
	}
	return t.get(ctx, opGetBy, wait, call, keys)
}

// all is the next call by the members of the set. One that cannot be made does not count,
// as the others would not hear of it.
func (t *Store) all(ctx context.Context, op fault.Call, keys []string) (collective, error) {
	if err := t.askable(ctx, op, keys); err != nil {
		return collective{}, err
	}
	return t.h.call(t.s, op, t.name)
}

// by is all of the members of coll.
func (t *Store) by(ctx context.Context, coll string, keys []string) (_ collective, err error) {
	if err := t.askable(ctx, opGetBy, keys); err != nil {
		return collective{}, err
	}
	if coll = canonical(coll); coll == protocol.SelfURI {
		return collective{}, nil
	}
	t.s.mu.Lock()
	h, err := t.s.find(string(opGetBy), coll)
	t.s.mu.Unlock()
	if err != nil {
		t.s.raise(&err)
		return collective{}, err
	}
	return h.call(t.s, opGetBy, coll)
}

// collective is the how manyth call it is of the members of a set; the zero value is
// that of who calls alone.
type collective struct {
	set  uint32
	call uint64
}

// call numbers a collective call.
func (h *held) call(s *Session, op fault.Call, name string) (collective, error) {
	if h.set.Members.Index(s.process().Self) < 0 {
		return collective{}, s.raised(mpi.ErrRank, string(op), fmt.Errorf("the calling process is not in the set %s", name))
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	h.had.Calls++
	return collective{h.set.Number, h.had.Calls}, nil
}

// askable says why keys cannot be asked for.
func (t *Store) askable(ctx context.Context, op fault.Call, keys []string) (err error) {
	defer t.s.raise(&err)
	if len(keys) == 0 || len(keys) > MaxKeys {
		return t.s.fail(mpi.ErrArg, string(op), fmt.Errorf("%d keys, 1 to %d allowed", len(keys), MaxKeys))
	}
	for _, k := range keys {
		if k == "" || len(k) > MaxKey {
			return t.s.fail(mpi.ErrArg, string(op), fmt.Errorf("key of %d bytes (1 to %d)", len(k), MaxKey))
		}
	}
	if ctx.Err() != nil {
		return t.s.fail(mpi.ErrCancelled, string(op), fmt.Errorf("%s: %w", t.name, context.Cause(ctx)))
	}
	return t.usable(op)
}

func (t *Store) get(ctx context.Context, op fault.Call, wait bool, by collective, keys []string) (_ [][]byte, err error) {
	defer t.s.raise(&err)
	var b protocol.ValuesBody
	m := &protocol.SetGet{Set: t.h.set.Number, Coll: by.set, Keys: keys, Wait: wait, Call: by.call}
	if wait {
		err = t.askDuring(ctx, op, m, &b)
	} else {
		err = t.ask(ctx, op, m, &b)
	}
	if err != nil {
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

func (t *Store) usable(op fault.Call) error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.past.named(t.h.set.Number)
	return t.s.open(string(op))
}

func (t *Store) ask(ctx context.Context, op fault.Call, m, body protocol.Message) error {
	if err := t.s.process().Control.Ask(ctx, m, body); err != nil {
		return t.s.fail(classOf(err), string(op), fmt.Errorf("%s: %w", t.name, told(err)))
	}
	return nil
}

// askDuring is ask for what waits, if the set came of a change: not beyond the end of
// that.
func (t *Store) askDuring(ctx context.Context, op fault.Call, m, body protocol.Message) (err error) {
	f := t.s.process().During(ctx, t.h.over, func(ctx context.Context) *fault.Fault {
		if err = t.ask(ctx, op, m, body); err != nil {
			return &fault.Fault{Peer: -1, Err: err}
		}
		return nil
	})
	if f != nil && f.Class == fault.RolledBack {
		err = t.s.fail(ErrRolledBack, string(op), fmt.Errorf("%s: %w", t.name, f.Err))
	}
	return err
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
	call, err := t.all(ctx, opGetAll, keys)
	return t.startGet(ctx, opGetAll, wait, call, keys, err)
}

// IGetBy starts a GetBy: the values are there when the request is complete. It counts
// when it is started.
func (t *Store) IGetBy(ctx context.Context, coll string, wait bool, keys ...string) (*[][]byte, mpi.Request) {
	call, err := t.by(ctx, coll, keys)
	return t.startGet(ctx, opGetBy, wait, call, keys, err)
}

func (t *Store) startGet(ctx context.Context, op fault.Call, wait bool, by collective, keys []string, wrong error) (*[][]byte, mpi.Request) {
	vals := new([][]byte)
	return vals, t.s.start(op, func() (err error) {
		if wrong != nil {
			return wrong
		}
		*vals, err = t.get(ctx, op, wait, by, keys)
		return err
	})
}

// start does something as a request.
func (s *Session) start(op fault.Call, f func() error) mpi.Request { return start(s.proc, op, f) }

func start(p *mpi.Process, op fault.Call, f func() error) (r mpi.Request) {
	*r.Core() = p.Core().Beside(op, f)
	return r
}
