// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package wait

import (
	"errors"
	"fmt"
	"runtime"
)

// This file replaces the Linux parts. On other systems a process waits as goroutines do.

// NewEpoll always fails.
func NewEpoll() (Sleeper, error) {
	return nil, fmt.Errorf("processes need Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func osYield() { runtime.Gosched() }

// CPU returns -1: the processor is not known.
func CPU() int { return -1 }

// Mover never moves a thread.
type Mover struct{}

// Balance does nothing.
func (*Mover) Balance(int, []uint16) bool { return false }
