// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/base/wire"
)

// Address is the socket of a job's agent on a host.
func Address(job wire.JobID, host uint32) string {
	addr := fmt.Sprintf("%s%016x", addressPrefix(), uint64(job))
	if host > 0 { // another on the same machine has the first name
		addr += fmt.Sprintf(".%d", host)
	}
	return addr
}

// ParseAddress is whose socket this is.
func ParseAddress(addr string) (job wire.JobID, ok bool) {
	text, ok := strings.CutPrefix(addr, addressPrefix())
	if !ok {
		return 0, false
	}
	hex, of, _ := strings.Cut(text, ".")
	id, err := strconv.ParseUint(hex, 16, 64)
	host, _ := strconv.ParseUint(of, 10, 32) // else it is another address than this
	job = wire.JobID(id)
	return job, err == nil && Address(job, uint32(host)) == addr
}
