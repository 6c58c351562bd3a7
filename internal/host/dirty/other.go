// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package dirty

import "errors"

// Tracker is none: no kernel but Linux tells what was written.
type Tracker struct{}

var errNotLinux = errors.New("only Linux tells it")

// Open always fails.
func Open() (*Tracker, error) { return nil, errNotLinux }

// Close does nothing.
func (t *Tracker) Close() error { return nil }

// Arm always fails.
func (t *Tracker) Arm([]byte) (Watch, error) { return nil, errNotLinux }

// Copy always fails.
func Copy(dst, src []byte) error { return errNotLinux }

// CanCopy says why.
func CanCopy() error { return errNotLinux }
