// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
)

// Predefined attributes, the same on every communicator. MPI 4.1 section 9.1.2.
const (
	TagUB         = MaxTag    // the largest tag
	IORank        = AnySource // every rank can do input and output
	WtimeIsGlobal = false     // clocks of different hosts are not synchronised
)

// Keyval is a key under which communicators, and datatypes, carry values of
// type T. Each NewKeyval makes another one, for all communicators of the
// program; there is nothing to free. The zero Keyval is invalid. MPI 4.1 section 7.7.
type Keyval[T any] struct{ key *keyval }

// keyval has the callbacks of a key.
type keyval struct {
	copy func(c *Comm, v any) (any, bool, error)
	del  func(c *Comm, v any) error
}

// NewKeyval makes a key. When a communicator is duplicated, copy returns the
// value for the new one, or false if it is to have none; nil means none. del
// is called with a value that is deleted, replaced, or whose communicator is
// freed; it may be nil. An error of copy fails the duplication on this
// process, one of del leaves the value where it is, except in Free. Copies for
// a duplicate that is not made are deleted from the communicator itself.
func NewKeyval[T any](copy func(c *Comm, v T) (T, bool, error), del func(c *Comm, v T) error) Keyval[T] {
	k := new(keyval)
	if copy != nil {
		k.copy = func(c *Comm, v any) (any, bool, error) { return copy(c, valueOf[T](v)) }
	}
	if del != nil {
		k.del = func(c *Comm, v any) error { return del(c, valueOf[T](v)) }
	}
	return Keyval[T]{k}
}

// CopyAttr is the copy callback that hands the value on unchanged
// (MPI_COMM_DUP_FN).
func CopyAttr[T any](_ *Comm, v T) (T, bool, error) { return v, true, nil }

// attributes are the values of one communicator in the order in which their
// keys were first set. Callbacks run without the lock.
type attributes struct {
	mu   sync.Mutex
	list []attribute
}

type attribute struct {
	key   *keyval
	value any
}

func (a *attributes) get(k *keyval) (any, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.list {
		if x.key == k {
			return x.value, true
		}
	}
	return nil, false
}

func (a *attributes) set(k *keyval, v any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.list {
		if a.list[i].key == k {
			a.list[i].value = v
			return
		}
	}
	a.list = append(a.list, attribute{k, v})
}

func (a *attributes) remove(k *keyval) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(x attribute) bool { return x.key == k })
}

// take removes the last value.
func (a *attributes) take() (last attribute, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.list); n > 0 {
		last, ok = a.list[n-1], true
		a.list = slices.Delete(a.list, n-1, n)
	}
	return last, ok
}

func (a *attributes) all() []attribute {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

const (
	opSetAttr    fault.Call = "SetAttr"
	opDeleteAttr fault.Call = "DeleteAttr"
)

// SetAttr gives the communicator a value under a key. A value that it had is
// deleted first; an error of that leaves it in place. Local.
// MPI 4.1 section 7.7.2.
func SetAttr[T any](c *Comm, k Keyval[T], v T) error {
	if err := c.dropAttr(opSetAttr, k.key); err != nil {
		return err
	}
	c.core.attrs.set(k.key, v)
	return nil
}

// GetAttr returns the communicator's value under a key, and whether it has
// one. Local. MPI 4.1 section 7.7.2.
func GetAttr[T any](c *Comm, k Keyval[T]) (T, bool) {
	v, ok := c.of("GetAttr").attrs.get(k.key)
	return valueOf[T](v), ok
}

// valueOf is a value that was set as a T: nil stands for no value, or for the
// nil of an interface type.
func valueOf[T any](v any) T {
	x, _ := v.(T)
	return x
}

// DeleteAttr removes the communicator's value under a key, if it has one.
// Local. MPI 4.1 section 7.7.2.
func DeleteAttr[T any](c *Comm, k Keyval[T]) error { return c.dropAttr(opDeleteAttr, k.key) }

func (c *Comm) dropAttr(op fault.Call, k *keyval) error {
	if err := c.exists(op); err != nil {
		return err
	}
	if k == nil {
		return c.fail(&argFault{class: ErrKeyval, op: op, err: errNoKeyval})
	}
	v, ok := c.core.attrs.get(k)
	if !ok {
		return nil
	}
	if k.del != nil {
		if err := k.del(c, v); err != nil {
			return c.fail(&argFault{class: ErrArg, op: op, err: fmt.Errorf("delete callback: %w", err)})
		}
	}
	c.core.attrs.remove(k)
	return nil
}

// TypeWithAttr is the same datatype carrying a value under a key. As a datatype
// never changes and is not freed, the key's callbacks are for communicators
// alone; WithName keeps the values, types made of this one do not have them.
// With a zero Keyval the type cannot be used. MPI 4.1 section 7.7.4.
func TypeWithAttr[T any](dt Datatype, k Keyval[T], v T) Datatype {
	if k.key == nil {
		return Datatype{&dtype.Type{Name: dt.Name(), Err: errNoKeyval}}
	}
	return Datatype{dt.typ().WithAttr(k.key, v)}
}

// TypeAttr returns the value that a datatype carries under a key, and whether
// it has one. MPI 4.1 section 7.7.4.
func TypeAttr[T any](dt Datatype, k Keyval[T]) (T, bool) {
	v, ok := dt.typ().Attr(k.key)
	return valueOf[T](v), ok
}

var errNoKeyval = errors.New("a key was not made by NewKeyval")

// copyAttrs returns what a duplicate of c is to carry.
func (c *Comm) copyAttrs(op fault.Call) ([]attribute, error) {
	var list []attribute
	for _, a := range c.core.attrs.all() {
		if a.key.copy == nil {
			continue
		}
		v, keep, err := a.key.copy(c, a.value)
		if err != nil {
			return nil, c.giveBack(list, c.fail(&argFault{class: ErrArg, op: op, err: fmt.Errorf("copy callback: %w", err)}))
		}
		if keep {
			list = append(list, attribute{a.key, v})
		}
	}
	return list, nil
}

// giveBack deletes copies for a duplicate that will not be made, the last one
// first, and returns why, with the errors of their callbacks.
func (c *Comm) giveBack(copies []attribute, why error) error {
	for _, a := range slices.Backward(copies) {
		if err := c.deleted(a); err != nil {
			why = errors.Join(why, err)
		}
	}
	return why
}

// deleted calls the delete callback for a value that was taken out.
func (c *Comm) deleted(a attribute) error {
	if a.key.del == nil {
		return nil
	}
	if err := a.key.del(c, a.value); err != nil {
		return c.fail(&argFault{class: ErrArg, op: opDeleteAttr, err: fmt.Errorf("delete callback: %w", err)})
	}
	return nil
}

// deleteAttrs deletes all values, the last one first, each once: a callback, or
// another goroutine, may free the communicator, too.
func (c *Comm) deleteAttrs() error {
	var failed error
	for range c.core.attrs.all() {
		if a, ok := c.core.attrs.take(); ok {
			failed = errors.Join(failed, c.deleted(a))
		}
	}
	return failed
}
