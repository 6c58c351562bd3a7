// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import "runtime"

func affinity() int { return runtime.NumCPU() }
