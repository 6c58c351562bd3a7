// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package core

import (
	"errors"
	"fmt"
	"runtime"

	"gompi/internal/control/protocol"
)

// join is Join under gompirun, which is for Linux.
func join(_, _ string) (Boot, error) {
	return Boot{}, fmt.Errorf("gompi: jobs of several processes need Linux, this is %s; a rank alone and package mpitest work here: %w",
		runtime.GOOS, errors.ErrUnsupported)
}

// page is where a process has its roll call in the memory that it shares.
func page(*protocol.Welcome) ([]byte, error) { return nil, errors.ErrUnsupported }
