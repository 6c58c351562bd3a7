// SPDX-License-Identifier: Apache-2.0

package rma

import "gompi/mpi"

// Memory is the caller's memory in the window: what it gave to Create, or what
// was allocated, as elements of T, as many as there are whole. It is nil in a
// dynamic window, if the memory is not aligned for T, and if T holds pointers.
// Not to be used after Free. Local. MPI 4.1 section 12.2.6.
func Memory[T any](w *Window) []T {
	if w.core.flavor == FlavorDynamic || w.core.freed.Load() || mpi.TypeOf[T]().Err() != nil {
		return nil
	}
	return elementsOf[T](w.core.region.Mem())
}
