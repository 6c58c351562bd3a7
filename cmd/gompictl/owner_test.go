// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
)

// Jobs of other users are not listed, and are no job that a command can mean; root
// sees all. Of one whose owner nobody can tell the list says why.
func TestJobsOfOthers(t *testing.T) {
	var addrs []string
	for i := range 3 {
		addr := protocol.Address(wire.JobID(uint64(os.Getpid())<<20|uint64(i)|0xe<<60), 0)
		ln, err := net.Listen("unix", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		if uid, err := client.Owner(addr); err != nil || uid != os.Geteuid() {
			t.Fatalf("the owner of a socket of our own: %d, %v", uid, err)
		}
		addrs = append(addrs, addr)
	}
	owner := func(addr string) (int, error) {
		switch addr {
		case addrs[0]:
			return 1000, nil
		case addrs[1]:
			return 2000, nil
		}
		return 0, fmt.Errorf("no answer")
	}
	for uid, want := range map[int][]bool{1000: {true, false, true}, 2000: {false, true, true}, 0: {true, true, true}} {
		jobs, others, err := jobsOf(uid, owner)
		if err != nil {
			t.Fatal(err)
		}
		for i, addr := range addrs {
			is := func(j client.JobAddr) bool { return j.Addr == addr }
			if got := slices.ContainsFunc(jobs, is); got != want[i] {
				t.Errorf("user %d: job %d is listed: %v", uid, i, got)
			}
			for j := range others {
				if is(j) == want[i] && is(j) {
					t.Errorf("user %d: job %d is another's", uid, i)
				}
			}
		}
	}
	if !strings.Contains(psHelp, "root sees those of all users") {
		t.Error("the help of ps does not say whose jobs it lists")
	}
}
