// SPDX-License-Identifier: Apache-2.0

package value

import (
	"fmt"

	"gompi/mpi"
)

// unencoded stands for the length of a value that its rank cannot encode.
const unencoded = -1

// Gather returns the values of all ranks, by rank, on root; nil on the others.
// A rank that cannot encode its value gets an error, and so does root. Collective.
func Gather[T any](c *mpi.Comm, v T, root int) ([]T, error) {
	if err := c.Core().Intra("value.Gather"); err != nil {
		return nil, err
	}
	b, n, encErr := part(c, &v)
	lengths := make([]int, c.Size())
	if err := mpi.Gather(c, []int{n}, lengths, root); err != nil {
		return nil, err
	}
	if c.Rank() != root {
		if err := mpi.Gatherv(c, b, nil, nil, nil, root); err != nil {
			return nil, err
		}
		return nil, fault(c, "value.Gather", c.Rank(), encErr)
	}
	all, counts, bad := room(lengths)
	if err := mpi.Gatherv(c, b, all, counts, nil, root); err != nil {
		return nil, err
	}
	if bad < 0 {
		return values[T](c, "value.Gather", all, counts)
	}
	return nil, fault(c, "value.Gather", bad, reason(bad == root, encErr, bad))
}

// Allgather returns the values of all ranks, by rank, on every rank. If one
// cannot encode its value, every rank gets an error. Collective.
func Allgather[T any](c *mpi.Comm, v T) ([]T, error) {
	if err := c.Core().Intra("value.Allgather"); err != nil {
		return nil, err
	}
	b, n, encErr := part(c, &v)
	lengths := make([]int, c.Size())
	if err := mpi.Allgather(c, []int{n}, lengths); err != nil {
		return nil, err
	}
	all, counts, bad := room(lengths)
	if bad >= 0 {
		return nil, fault(c, "value.Allgather", bad, reason(encErr != nil, encErr, bad))
	}
	if err := mpi.Allgatherv(c, b, all, counts, nil); err != nil {
		return nil, err
	}
	return values[T](c, "value.Allgather", all, counts)
}

// Scatter returns the r-th of root's values on rank r; those of the others are
// ignored. If root has not one for each rank, or cannot encode them, every rank
// gets an error. Collective.
func Scatter[T any](c *mpi.Comm, vs []T, root int) (T, error) {
	var zero T
	if err := c.Core().Intra("value.Scatter"); err != nil {
		return zero, err
	}
	var all []byte
	var counts []int
	var encErr error
	if c.Rank() == root {
		all, counts, encErr = parts(c, vs)
		if encErr != nil {
			for r := range counts {
				counts[r] = unencoded
			}
		}
	}
	mine := make([]int, 1)
	if err := mpi.Scatter(c, counts, mine, root); err != nil {
		return zero, err
	}
	if n := mine[0]; n < 0 || n > MaxBytes {
		return zero, fault(c, "value.Scatter", root, reason(encErr != nil, encErr, root))
	}
	b := make([]byte, mine[0])
	if err := mpi.Scatterv(c, all, counts, nil, b, root); err != nil {
		return zero, err
	}
	var v T
	if err := codecsOf(c).decode(b, &v); err != nil {
		return zero, failed(c, "value.Scatter", root, -1, err)
	}
	return v, nil
}

// Alltoall sends the r-th of vs to rank r, and returns what the ranks have sent
// here, by rank. A rank that has not a value for each, or cannot encode them,
// gets an error, and so do all others. Collective.
func Alltoall[T any](c *mpi.Comm, vs []T) ([]T, error) {
	if err := c.Core().Intra("value.Alltoall"); err != nil {
		return nil, err
	}
	out, counts, encErr := parts(c, vs)
	if encErr != nil {
		out = nil
		for r := range counts {
			counts[r] = unencoded
		}
	}
	lengths := make([]int, c.Size())
	if err := mpi.Alltoall(c, counts, lengths); err != nil {
		return nil, err
	}
	if encErr != nil {
		clear(counts)
	}
	all, from, bad := room(lengths)
	if err := mpi.Alltoallv(c, out, counts, nil, all, from, nil); err != nil {
		return nil, err
	}
	if encErr != nil {
		bad = c.Rank()
	}
	if bad >= 0 {
		return nil, fault(c, "value.Alltoall", bad, reason(encErr != nil, encErr, bad))
	}
	return values[T](c, "value.Alltoall", all, from)
}

// Reduce returns the values of all ranks combined by f, in the order of ranks,
// on root; the zero value on the others. f runs on root alone and returns its
// operands combined, of which the first comes from lower ranks. Errors are those
// of Gather. Collective.
func Reduce[T any](c *mpi.Comm, v T, f func(a, b T) T, root int) (T, error) {
	var zero T
	all, err := Gather(c, v, root)
	if err != nil || c.Rank() != root {
		return zero, err
	}
	sum := all[0]
	for _, v := range all[1:] {
		sum = f(sum, v)
	}
	return sum, nil
}

// part encodes the caller's part of a collective. n is what the others are told
// of its length; without an encoding there are no bytes.
func part(c *mpi.Comm, v any) (b []byte, n int, err error) {
	if b, err = codecsOf(c).encode(v); err != nil {
		return nil, unencoded, err
	}
	return b, len(b), nil
}

// parts encodes a value for each rank, one behind the other.
func parts[T any](c *mpi.Comm, vs []T) (all []byte, counts []int, err error) {
	counts = make([]int, c.Size())
	if len(vs) != len(counts) {
		return nil, counts, fmt.Errorf("%d values for %d ranks", len(vs), len(counts))
	}
	for r := range vs {
		b, err := codecsOf(c).encode(&vs[r])
		if err != nil {
			return nil, counts, err
		}
		all = append(all, b...)
		counts[r] = len(b)
	}
	return all, counts, nil
}

// room makes room for values of lengths that others have told, which become
// counts. bad is the first rank without one, else -1.
func room(lengths []int) (all []byte, counts []int, bad int) {
	total := 0
	bad = -1
	for r, n := range lengths {
		if n < 0 || n > MaxBytes {
			lengths[r] = 0
			if bad < 0 {
				bad = r
			}
			continue
		}
		total += n
	}
	return make([]byte, total), lengths, bad
}

// values decodes the values of all ranks.
func values[T any](c *mpi.Comm, op string, all []byte, counts []int) ([]T, error) {
	vs := make([]T, len(counts))
	for r, n := range counts {
		if err := codecsOf(c).decode(all[:n], &vs[r]); err != nil {
			return nil, failed(c, op, r, -1, err)
		}
		all = all[n:]
	}
	return vs, nil
}

// reason is why a rank has sent nothing: the caller's own error, if it is the
// caller.
func reason(own bool, err error, rank int) error {
	if own {
		return err
	}
	return fmt.Errorf("rank %d cannot encode its value, or it has more than %d bytes", rank, MaxBytes)
}

// fault is the error of a call, nil without a reason.
func fault(c *mpi.Comm, op string, rank int, why error) error {
	if why == nil {
		return nil
	}
	return failed(c, op, rank, -1, why)
}
