// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testjob

import (
	"errors"
	"fmt"
	"runtime"

	"gompi/transport"
)

func openOS(name string, _ transport.Env) (transport.Transport, []string, error) {
	return nil, nil, fmt.Errorf("testjob: transport %q needs Linux, on %s there is inproc: %w", name, runtime.GOOS, errors.ErrUnsupported)
}

func closeAll([]int) {}
