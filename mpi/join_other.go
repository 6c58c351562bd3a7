// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mpi

import (
	"errors"
	"fmt"
	"runtime"
)

// join is Init under gompirun, which is for Linux.
func join(_, _ string) (*Process, error) {
	return nil, fmt.Errorf("gompi: jobs of several processes need Linux, this is %s; a rank alone and package mpitest work here: %w",
		runtime.GOOS, errors.ErrUnsupported)
}
