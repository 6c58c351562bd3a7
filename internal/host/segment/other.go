// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package segment

import (
	"errors"

	"gompi/internal/base/wire"
)

// Elsewhere than on Linux no memory is shared: processes have no segment.

// NoMemoryError is for Linux.
type NoMemoryError struct{ error }

// Memory reserves nothing.
type Memory struct{ Small bool }

// Take lets piece take all at once.
func (*Memory) Take(n int64, piece func(k int64) error) error { return piece(n) }

// HeapStep is for Linux.
const HeapStep = 4 << 20

// Heap asks nobody.
func (*Memory) Heap([]byte) error { return nil }

// Close does nothing.
func (*Memory) Close() {}

// FreeMemory is not known.
func FreeMemory() int64 { return 0 }

// CreateTaken gives no segment and no bell.
func CreateTaken() (segFD, bellFD int, err error) { return -1, -1, nil }

// SetOwner has nothing to own.
func SetOwner(int, wire.ProcID) error { return nil }

// Map has nothing to map.
func Map(int, int64, int64, bool) ([]byte, error) { return nil, errors.ErrUnsupported }

// Unmap undoes nothing.
func Unmap([]byte) error { return errors.ErrUnsupported }

// CreateArena gives no memory.
func CreateArena(int64) (fd int, n int64, err error) { return -1, 0, errors.ErrUnsupported }

// CheckArena finds no arena.
func CheckArena(int, int64) error { return errors.ErrUnsupported }

// MapArena has nothing to map.
func MapArena(int, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

// Reserve has nothing to reserve.
func (*Memory) Reserve(int, int64, int64) error { return errors.ErrUnsupported }

// Fill has nothing to fill.
func (*Memory) Fill(int, []byte, int64, int64) (int64, error) { return 0, errors.ErrUnsupported }

// Punch has nothing to release.
func Punch([]byte) error { return errors.ErrUnsupported }

// Guard has nothing to protect.
func Guard([]byte, bool) error { return errors.ErrUnsupported }

// Release has nothing to release.
func Release(int, int64, int64) error { return errors.ErrUnsupported }
