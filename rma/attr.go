// SPDX-License-Identifier: Apache-2.0

package rma

import "gompi/mpi"

// Keyval is a key under which windows carry values of type T. Each NewKeyval
// makes another one; there is nothing to free. The zero Keyval is invalid.
// MPI 4.1 section 7.7.3.
type Keyval[T any] struct{ key mpi.Keyval[held[T]] }

// held is a value with the window that holds it.
type held[T any] struct {
	w *Window
	v T
}

// NewKeyval makes a key. del is called with a value that is deleted, replaced,
// or whose window is freed; it may be nil. An error of it leaves the value
// where it is, except in Free.
func NewKeyval[T any](del func(w *Window, v T) error) Keyval[T] {
	if del == nil {
		return Keyval[T]{mpi.NewKeyval[held[T]](nil, nil)}
	}
	return Keyval[T]{mpi.NewKeyval(nil, func(_ *mpi.Comm, h held[T]) error { return del(h.w, h.v) })}
}

// SetAttr gives the window a value under a key. A value that it had is deleted
// first; an error of that leaves it in place. Local. MPI 4.1 section 7.7.3.
func SetAttr[T any](w *Window, k Keyval[T], v T) error {
	return mpi.SetAttr(w.core.comm, k.key, held[T]{&w.core.window, v})
}

// GetAttr returns the window's value under a key, and whether it has one.
// Local. MPI 4.1 section 7.7.3.
func GetAttr[T any](w *Window, k Keyval[T]) (T, bool) {
	h, ok := mpi.GetAttr(w.core.comm, k.key)
	return h.v, ok
}

// DeleteAttr removes the window's value under a key, if it has one. Local.
// MPI 4.1 section 7.7.3.
func DeleteAttr[T any](w *Window, k Keyval[T]) error { return mpi.DeleteAttr(w.core.comm, k.key) }
