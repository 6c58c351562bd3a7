// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package dirty

import "errors"

// Tracker is a stub: only Linux tells which memory was written.
type Tracker struct{}

var errNotLinux = errors.New("only Linux supports it")

// Open always fails.
func Open() (*Tracker, error) { return nil, errNotLinux }

// Close does nothing.
func (t *Tracker) Close() error { return nil }

// Arm always fails.
func (t *Tracker) Arm([]byte) (Watch, error) { return nil, errNotLinux }

// Copy always fails.
func Copy(dst, src []byte) error { return errNotLinux }

// CanCopy returns the reason why Copy does not work here.
func CanCopy() error { return errNotLinux }
