// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import "errors"

// Most is known on Linux only.
func Most(int64) (int64, error) { return 0, errors.ErrUnsupported }
