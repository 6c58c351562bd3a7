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

// Store holds values by keys that processes put into a set for each other. It lives as
// long as the set. Any process that knows the set may use it; the store of a newcomers' set
// can be written before the newcomers read it. Any goroutine may call its methods.
type Store struct {
	s    *Session
	h    *setRef
	name string
}

// Store returns the store of a set, which may be used until Close. Local. Errors: ErrSet,
// ErrSetGone, ErrSession.
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

// Limits of a store: the longest key and value, in bytes, and the number of keys in one
// Get.
const (
	MaxKey   = 1 << 10
	MaxValue = 256 << 10
	MaxKeys  = 1 << 10
)

// The limits are those of the control protocol.
const (
	_ = uint(MaxKey-protocol.MaxKey) + uint(protocol.MaxKey-MaxKey)
	_ = uint(MaxValue-protocol.MaxValue) + uint(protocol.MaxValue-MaxValue)
	_ = uint(MaxKeys-protocol.MaxKeys) + uint(protocol.MaxKeys-MaxKeys)
)

const (
	opPut    fault.Call = "Store.Put"
	opGet    fault.Call = "Store.Get"
	opGetAll fault.Call = "Store.GetAll"
	opGetBy  fault.Call = "Store.GetBy"
)

// Put stores a value, and replaces an older one. Local. On return the value is in the
// store, and val may be reused. Errors: mpi.ErrArg, ErrSetGone, ErrSession.
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

// Get returns the values of keys, nil for a key without a value. Local. With wait it
// returns when all keys have values. The caller owns the values.
//
// Errors: mpi.ErrArg, ErrSetGone, ErrSession; mpi.ErrCancelled when ctx ends; with wait
// also ErrRolledBack if the set came of a change that is rolled back, and an error when no
// other process is left that could put the keys.
func (t *Store) Get(ctx context.Context, wait bool, keys ...string) ([][]byte, error) {
	if err := t.askable(ctx, opGet, keys); err != nil {
		return nil, err
	}
	return t.get(ctx, opGet, wait, collective{}, keys)
}

// GetAll is Get by all members of the set, with the same keys: all members get the answer
// that the first caller gets. Collective over the set: the k-th calls of all members belong
// together. Without wait no member waits for another. Errors: those of Get; mpi.ErrRank if
// the caller is not in the set.
func (t *Store) GetAll(ctx context.Context, wait bool, keys ...string) ([][]byte, error) {
	call, err := t.all(ctx, opGetAll, keys)
	if err != nil {
		return nil, err
	}
	return t.get(ctx, opGetAll, wait, call, keys)
}

// GetBy is Get by all members of another set, coll, with the same store and keys;
// "mpi://SELF" is Get. Collective over coll: the calls of GetBy and GetAll by the members
// of one set, of any stores, count together, and all members make them in the same order.
// Without wait no member waits for another. Errors: those of GetAll.
//
// MPI_Session_get_pset_data of the DPP prototype.
func (t *Store) GetBy(ctx context.Context, coll string, wait bool, keys ...string) ([][]byte, error) {
	call, err := t.by(ctx, coll, keys)
	if err != nil {
		return nil, err
	}
	return t.get(ctx, opGetBy, wait, call, keys)
}

// all numbers the next collective call of the set's members. A call with an error does not
// count: the others do not make it.
func (t *Store) all(ctx context.Context, op fault.Call, keys []string) (collective, error) {
	if err := t.askable(ctx, op, keys); err != nil {
		return collective{}, err
	}
	return t.h.call(t.s, op, t.name)
}

// by is all for the members of coll.
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

// collective identifies a collective call: the set whose members make it, and its number
// among their calls. The zero value means that the process calls alone.
type collective struct {
	set  uint32
	call uint64
}

// call numbers a collective call.
func (h *setRef) call(s *Session, op fault.Call, name string) (collective, error) {
	if h.set.Members.Index(s.process().Self) < 0 {
		return collective{}, s.raised(mpi.ErrRank, string(op), fmt.Errorf("the calling process is not in the set %s", name))
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	h.had.Calls++
	return collective{h.set.Number, h.had.Calls}, nil
}

// askable returns why keys cannot be requested.
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
	t.s.retention.touch(t.h.set.Number)
	return t.s.open(string(op))
}

func (t *Store) ask(ctx context.Context, op fault.Call, m, body protocol.Message) error {
	if err := t.s.process().Control.Ask(ctx, m, body); err != nil {
		return t.s.fail(classOf(err), string(op), fmt.Errorf("%s: %w", t.name, detailOf(err)))
	}
	return nil
}

// askDuring is ask for a call that waits. If the set came of an undecided change the wait
// ends with that change.
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

// IPut starts a Put. Local. When the request is complete the value is in the store, and val
// may be reused.
func (t *Store) IPut(key string, val []byte) mpi.Request {
	return t.s.start(opPut, func() error { return t.Put(key, val) })
}

// IGet starts a Get. Local. The values may be read when the request is complete.
func (t *Store) IGet(ctx context.Context, wait bool, keys ...string) (*[][]byte, mpi.Request) {
	vals := new([][]byte)
	return vals, t.s.start(opGet, func() (err error) {
		*vals, err = t.Get(ctx, wait, keys...)
		return err
	})
}

// IGetAll starts a GetAll, which counts from the start. Collective over the set. The values
// may be read when the request is complete.
func (t *Store) IGetAll(ctx context.Context, wait bool, keys ...string) (*[][]byte, mpi.Request) {
	call, err := t.all(ctx, opGetAll, keys)
	return t.startGet(ctx, opGetAll, wait, call, keys, err)
}

// IGetBy starts a GetBy, which counts from the start. Collective over coll. The values may
// be read when the request is complete.
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

// start runs f beside the caller, as a request.
func (s *Session) start(op fault.Call, f func() error) mpi.Request { return start(s.proc, op, f) }

func start(p *mpi.Process, op fault.Call, f func() error) (r mpi.Request) {
	*r.Core() = p.Core().Beside(op, f)
	return r
}
