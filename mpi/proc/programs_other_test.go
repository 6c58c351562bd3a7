// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc_test

import "gompi/internal/test/scenes"

// Programs are started by gompirun, which needs Linux.
var programs []scenes.Scene
