// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package control

import (
	"fmt"
	"os"
	"path/filepath"

	"gompi/internal/wire"
)

// Address is the socket of a job's agent, a file that ends with it.
func Address(job wire.JobID) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("gompi-%016x", uint64(job)))
}
