// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"strings"
	"testing"
)

func TestWithoutOwn(t *testing.T) {
	const main = "goroutine 1 [chan receive]:\ngompi/internal/engine.(*Engine).park(0x1)\n\t/x/wait.go:295 +0x168\n" +
		"main.main()\n\t/x/main.go:22 +0xe8\n"
	const reader = "goroutine 8 [IO wait]:\ninternal/poll.runtime_pollWait(0x7f)\n\t/usr/go/netpoll.go:351 +0x85\n" +
		"created by gompi/internal/control.newClient in goroutine 1\n\t/x/client.go:82 +0x17b\n"
	const worker = "goroutine 9 [select]:\nsync.runtime_notifyListWait(0x1)\n\t/usr/go/sema.go:617 +0x1b3\n" +
		"created by example.com/solver.start in goroutine 1\n\t/y/solver.go:83 +0x1\n"
	got := string(withoutOwn([]byte(main + "\n" + reader + "\n" + worker + "\n" + strings.Replace(reader, "8", "11", 1))))
	if want := main + "\n" + worker + "\n2 goroutines of gompi itself are left out\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(stacks()); !strings.Contains(got, "TestWithoutOwn") {
		t.Errorf("this goroutine is not in\n%s", got)
	}
}
