// SPDX-License-Identifier: Apache-2.0

// Package value moves arbitrary Go values between ranks: structs with slices,
// maps and strings, encoded by encoding/gob, slices of numbers as they are, and
// maps, lists and values behind interfaces that have no structs in them in a
// short encoding of its own.
// It is for configuration, results and other things whose size does not matter;
// arrays of numbers that are there already travel faster by package mpi.
//
// What it learns about a type it keeps, for some types of each process: the
// first values of a type take ten times as long as those after it.
//
// The rules of gob hold: only exported fields travel, types that are behind an
// interface must be registered (gob.Register) on both sides, and functions and
// channels cannot be sent. A value whose interfaces hold nothing but basic types,
// slices of them or of any, and maps of such by string or int needs no
// registered types. Sender and receiver may use different types that
// gob considers compatible. Values may lie in each other 200,000 deep: a longer
// linked list is refused by the receiver.
//
// Long values take time and memory. Slices of numbers, and what has the short encoding, are
// copied once on either side: a GiB takes a second or two. What gob encodes takes the receiver
// ten times as long: gob reads a message, and each long slice in it, in steps, and copies all
// of it whenever it needs more room. A struct with a slice of 2 GiB takes half a minute on an
// idle machine, and both sides about four times its memory. Send such a slice by itself, or by
// package mpi.
//
// A value is no message of elements: a typed receive (mpi.Recv) of one fails
// with mpi.ErrType, and so does Recv of typed elements.
package value

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"reflect"

	"gompi/mpi"
)

// MaxBytes is the largest encoding that Recv and Bcast accept: a length is
// another process's word for how much memory to take.
const MaxBytes = 1 << 32

// Send sends v to rank dest with tag. v may be changed at return. It may wait
// for the receive, like mpi.Send.
func Send[T any](c *mpi.Comm, v T, dest, tag int) error {
	b, err := codecsOf(c).encode(&v)
	if err != nil {
		return failed(c, "value.Send", dest, tag, err)
	}
	return c.Core().SendValue(b, dest, tag)
}

// Isend starts a Send. v is encoded before it returns and may be changed at
// once.
func Isend[T any](c *mpi.Comm, v T, dest, tag int) (r mpi.Request) {
	b, err := codecsOf(c).encode(&v)
	if err != nil {
		*r.Core() = c.Core().Failed(failed(c, "value.Isend", dest, tag, err))
	} else {
		*r.Core() = c.Core().IsendValue(b, dest, tag)
	}
	return r
}

// Recv receives a value from source (or mpi.AnySource) with tag (or
// mpi.AnyTag). Bytes of its status are those of the encoding. A message that
// is no encoding of a T is gone, and gives mpi.ErrType; so is one of more than
// MaxBytes (mpi.ErrTruncate), or of more bytes than this process could ever
// have (mpi.ErrNoMemory).
func Recv[T any](c *mpi.Comm, source, tag int) (T, mpi.Status, error) {
	var v T
	b, got, err := c.Core().ReceiveValue(source, tag, MaxBytes)
	st := mpi.Status(got)
	if err != nil || st.Source == mpi.ProcNull {
		return v, st, err
	}
	if err := codecsOf(c).decode(b, &v); err != nil {
		var zero T
		return zero, st, failed(c, "value.Recv", st.Source, st.Tag, err)
	}
	return v, st, nil
}

// Bcast returns root's v on every rank; the others' v is ignored. Collective.
// If root cannot encode it, every rank gets an error.
func Bcast[T any](c *mpi.Comm, v T, root int) (T, error) {
	var zero T
	var b []byte
	var encErr error
	n := -1
	if c.Rank() == root {
		if b, encErr = codecsOf(c).encode(&v); encErr == nil {
			n = len(b)
		}
	}
	n, err := mpi.BcastOne(c, n, root)
	switch {
	case err != nil:
		return zero, err
	case encErr != nil:
		return zero, failed(c, "value.Bcast", root, -1, encErr)
	case n < 0 || n > MaxBytes:
		return zero, failed(c, "value.Bcast", root, -1, fmt.Errorf("rank %d cannot encode its value, or it has more than %d bytes", root, MaxBytes))
	}
	if c.Rank() != root {
		b = make([]byte, n)
	}
	if err := mpi.Bcast(c, b, root); err != nil {
		return zero, err
	}
	if c.Rank() == root {
		return v, nil
	}
	if err := codecsOf(c).decode(b, &v); err != nil {
		return zero, failed(c, "value.Bcast", root, -1, err)
	}
	return v, nil
}

// decode decodes a stream of gob that stands for itself.
func decode(b []byte, v any) (err error) {
	defer catch(&err)
	if err := walk(b, reflect.TypeOf(v).Elem()); err != nil {
		return fmt.Errorf("%d bytes: %w", len(b), err)
	}
	r := bytes.NewReader(b)
	if err := gob.NewDecoder(r).Decode(v); err != nil {
		return fmt.Errorf("%d bytes: %w", len(b), err)
	}
	if r.Len() > 0 {
		return fmt.Errorf("%d of %d bytes follow the value", r.Len(), len(b))
	}
	return nil
}

// catch turns a panic into an error: gob and a type's own decoder run on bytes
// of another process.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v", p)
	}
}

func failed(c *mpi.Comm, op string, peer, tag int, err error) error {
	e := &mpi.Error{Class: mpi.ErrType, Op: op, Peer: peer, Tag: tag, Got: -1, Want: -1, Err: err}
	if c != nil {
		e.Comm, e.Rank = c.Name(), c.Rank()
	}
	return e
}
