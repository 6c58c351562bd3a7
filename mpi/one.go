// SPDX-License-Identifier: Apache-2.0

package mpi

import "iter"

// SendOne is Send of one element, which stays off the heap.
// MPI 4.1 section 3.2.1.
func SendOne[T any](c *Comm, x T, dest, tag int) error {
	_, err := one(c, x, func(in, _ Buf) error { return c.Bufs().Send(in, dest, tag) })
	return err
}

// RecvOne is Recv of one element, which stays off the heap. A message of less
// gives ErrCount. MPI 4.1 section 3.2.4.
func RecvOne[T any](c *Comm, source, tag int) (T, Status, error) {
	var zero T
	var st Status
	x, err := one(c, zero, func(_, out Buf) (err error) {
		if st, err = c.Bufs().Recv(out, source, tag); err == nil && st.Source != ProcNull && st.Bytes != out.Bytes() {
			err = c.fail(&argFault{class: ErrCount, op: "RecvOne", at: atPeerTag(st.Source, st.Tag), got: st.Bytes, want: out.Bytes(), unit: "bytes"})
		}
		return err
	})
	return x, st, err
}

// GatherOne is Gather of one element: those of all ranks on root, nil
// elsewhere. Collective. MPI 4.1 section 6.5.
func GatherOne[T any](c *Comm, x T, root int) ([]T, error) {
	var all []T
	if c != nil && c.collects(root) {
		all = make([]T, c.core.Targets)
	}
	_, err := one(c, x, func(in, _ Buf) error { return c.Bufs().Gather(in, BufOf(all), root) })
	return all, err
}

// AllgatherOne is Allgather of one element: those of all ranks. Collective.
// MPI 4.1 section 6.7.
func AllgatherOne[T any](c *Comm, x T) ([]T, error) {
	var all []T
	if c != nil {
		all = make([]T, c.core.Targets)
	}
	_, err := one(c, x, func(in, _ Buf) error { return c.Bufs().Allgather(in, BufOf(all)) })
	return all, err
}

// Received is a message that Messages yields.
type Received[T any] struct {
	Data []T
	Status
}

// Messages receives one message after the other as RecvNew does and yields
// them, until the loop is left. After an error there is no other. A loop ends
// from outside with the context of c.
func Messages[T any](c *Comm, source, tag int) iter.Seq2[Received[T], error] {
	return func(yield func(Received[T], error) bool) {
		for {
			data, st, err := RecvNew[T](c, source, tag)
			if !yield(Received[T]{data, st}, err) || err != nil {
				return
			}
		}
	}
}
