// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package segment

import (
	"errors"

	"gompi/internal/base/wire"
)

// This file is for systems other than Linux. There processes share no memory and have no
// segments.

// NoMemoryError never occurs here.
type NoMemoryError struct{ error }

// Memory reserves nothing here.
type Memory struct{ Small bool }

// Take calls piece once for all n bytes.
func (*Memory) Take(n int64, piece func(k int64) error) error { return piece(n) }

// HeapStep has a meaning on Linux only.
const HeapStep = 4 << 20

// PopulateHeap does nothing.
func (*Memory) PopulateHeap([]byte) error { return nil }

// Close does nothing.
func (*Memory) Close() {}

// FreeMemory returns 0: the free memory is not known.
func FreeMemory() int64 { return 0 }

// CreateTaken returns no segment and no bell.
func CreateTaken() (segFD, bellFD int, err error) { return -1, -1, nil }

// SetOwner does nothing.
func SetOwner(int, wire.ProcID) error { return nil }

// Map always fails.
func Map(int, int64, int64, bool) ([]byte, error) { return nil, errors.ErrUnsupported }

// Unmap always fails.
func Unmap([]byte) error { return errors.ErrUnsupported }

// CreateArena always fails.
func CreateArena(int64) (fd int, n int64, err error) { return -1, 0, errors.ErrUnsupported }

// CheckArena always fails.
func CheckArena(int, int64) error { return errors.ErrUnsupported }

// MapArena always fails.
func MapArena(int, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

// Reserve always fails.
func (*Memory) Reserve(int, int64, int64) error { return errors.ErrUnsupported }

// Fill always fails.
func (*Memory) Fill(int, []byte, int64, int64) (int64, error) { return 0, errors.ErrUnsupported }

// Punch always fails.
func Punch([]byte) error { return errors.ErrUnsupported }

// Guard always fails.
func Guard([]byte, bool) error { return errors.ErrUnsupported }

// Release always fails.
func Release(int, int64, int64) error { return errors.ErrUnsupported }
