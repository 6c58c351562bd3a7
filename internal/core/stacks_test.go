// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"
	"testing"
)

func TestWithoutOwn(t *testing.T) {
	const main = "goroutine 1 [chan receive]:\ngompi/internal/engine.(*Engine).park(0x1)\n\t/x/wait.go:295 +0x168\n" +
		"main.main()\n\t/x/main.go:22 +0xe8\n"
	const reader = "goroutine 8 [IO wait]:\ninternal/poll.runtime_pollWait(0x7f)\n\t/usr/go/netpoll.go:351 +0x85\n" +
		"created by gompi/internal/control/client.newClient in goroutine 1\n\t/x/client.go:82 +0x17b\n"
	const worker = "goroutine 9 [select]:\nsync.runtime_notifyListWait(0x1)\n\t/usr/go/sema.go:617 +0x1b3\n" +
		"created by example.com/solver.start in goroutine 1\n\t/y/solver.go:83 +0x1\n"
	got := string(withoutOwn([]byte(main + "\n" + reader + "\n" + worker + "\n" + strings.Replace(reader, "8", "11", 1))))
	const user = "goroutine 1 [chan receive, in internal/engine.(*Engine).park]:\nmain.main()\n\t/x/main.go:22 +0xe8\n"
	if want := user + "\n" + worker + "\n2 goroutines of gompi itself are left out\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const recv = "goroutine 5 [chan receive]:\ngompi/internal/engine.(*Engine).park(0x1)\n\t/x/wait.go:295 +0x168\n" +
		"gompi/mpi.Recv[...](0x1, {0x2, 0x4}, 0x2, 0x7)\n\t/x/p2p.go:71 +0x1a8\n" +
		"main.run(...)\n\t/x/main.go:22 +0xe8\ngompi/mpi.Main(0x3)\n\t/x/main.go:40 +0x1\nmain.main()\n\t/x/main.go:9 +0x1"
	const inside = "goroutine 6 [sleep]:\ntime.Sleep(0x1)\n\t/usr/go/time.go:1 +0x1\nmain.op(0x1)\n\t/x/main.go:3 +0x1\n" +
		"gompi/mpi.(*userOp[...]).kernel(0x1)\n\t/x/op.go:2 +0x1\nmain.main()\n\t/x/main.go:9 +0x1"
	for stack, want := range map[string]string{
		recv: "goroutine 5 [chan receive, in mpi.Recv[...]]:\nmain.run(...)\n\t/x/main.go:22 +0xe8\n" +
			"gompi/mpi.Main(0x3)\n\t/x/main.go:40 +0x1\nmain.main()\n\t/x/main.go:9 +0x1",
		inside: inside,
		worker: worker,
	} {
		if got := fromUser(stack); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if got := string(withoutOwn(stacks())); !strings.Contains(got, "TestWithoutOwn") {
		t.Errorf("this goroutine is not in\n%s", got)
	}
}
