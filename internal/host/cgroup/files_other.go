// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import (
	"io/fs"
	"os"
)

// system returns the root file system.
func system() fs.FS { return os.DirFS("/") }
