// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"gompi/internal/wire"
)

// Address is the abstract socket of a job's agent; "@" stands for the leading
// zero byte, as everywhere in Go.
func Address(job wire.JobID) string { return fmt.Sprintf("@gompi-%016x", uint64(job)) }
