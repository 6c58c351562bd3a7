// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/base/wire"
)

// Address returns the address of the socket of a job's agent on a host.
func Address(job wire.JobID, host uint32) string {
	addr := fmt.Sprintf("%s%016x", addressPrefix(), uint64(job))
	if host > 0 { // for several agents on one machine
		addr += fmt.Sprintf(".%d", host)
	}
	return addr
}

// ParseAddress returns the job of an address; ok is false if it is no address of an agent.
func ParseAddress(addr string) (job wire.JobID, ok bool) {
	text, ok := strings.CutPrefix(addr, addressPrefix())
	if !ok {
		return 0, false
	}
	hex, of, _ := strings.Cut(text, ".")
	id, err := strconv.ParseUint(hex, 16, 64)
	host, _ := strconv.ParseUint(of, 10, 32) // after an error the address is not the one that Address returns
	job = wire.JobID(id)
	return job, err == nil && Address(job, uint32(host)) == addr
}
