// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package wait

import (
	"errors"
	"fmt"
	"runtime"
)

// What needs Linux: elsewhere a process waits as goroutines do.

// NewEpoll is not there.
func NewEpoll() (Sleeper, error) {
	return nil, fmt.Errorf("processes need Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func osYield() { runtime.Gosched() }

// CPU is not known.
func CPU() int { return -1 }

// Mover moves nothing.
type Mover struct{}

// Even does nothing.
func (*Mover) Even(int, []uint16) bool { return false }
