// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import "errors"

// MemoryLimit works on Linux only.
func MemoryLimit(int64) (int64, error) { return 0, errors.ErrUnsupported }
