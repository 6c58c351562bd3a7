// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const envNoIPv4 = "GOMPI_TCP_TEST_NO_IPV4"

// TestHostWithoutIPv4 opens a transport where the loopback device has no IPv4
// address, in a network namespace of its own.
func TestHostWithoutIPv4(t *testing.T) {
	if os.Getenv(envNoIPv4) == "" {
		cmd := exec.Command("unshare", "-n", "sh", "-c",
			`ip link set lo up && ip addr del 127.0.0.1/8 dev lo && ip -6 addr show dev lo | grep -q ::1 || { echo cannot; exit 0; }
			exec "$0" -test.run='^TestHostWithoutIPv4$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), envNoIPv4+"=1")
		out, err := cmd.CombinedOutput()
		if cmd.Process == nil || strings.Contains(string(out), "cannot") || strings.Contains(string(out), "unshare: ") {
			t.Skipf("no namespace without IPv4 can be made here: %v %s", err, out)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	tr, err := Open(testEnv(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	addrs := tr.Addrs()
	if len(addrs) != 1 {
		t.Fatalf("addresses %v, want one", addrs)
	}
	if a, err := netip.ParseAddrPort(addrs[0]); err != nil || a.Addr() != netip.IPv6Loopback() || a.Port() == 0 {
		t.Errorf("address %s, %v; want one of [::1]", addrs[0], err)
	}
}
