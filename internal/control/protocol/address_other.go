// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package protocol

import (
	"os"
	"path/filepath"
)

// addressPrefix: sockets are files that end with their agents.
func addressPrefix() string { return filepath.Join(os.TempDir(), "gompi-") }
