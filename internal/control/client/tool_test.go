// SPDX-License-Identifier: Apache-2.0

package client

import (
	"strings"
	"testing"

	"gompi/internal/control/protocol"
)

func TestParseJobs(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 15437 @gompi-00000000000000ab
0000000000000000: 00000003 00000000 00000000 0001 03 15438 @gompi-00000000000000cd
0000000000000000: 00000002 00000000 00010000 0001 01 15439 @gompi-ab
0000000000000000: 00000002 00000000 00010000 0001 01 15440 /run/gompi-00000000000000ab
0000000000000000: 00000002 00000000 zz 0001 01 15441 @gompi-00000000000000ab
short
`
	addrs, err := protocol.ParseSockets(strings.NewReader(table))
	jobs := jobsOf(addrs)
	if err != nil || len(jobs) != 1 || jobs[0].Job != 0xab {
		t.Errorf("%+v, %v", jobs, err)
	}
}
