// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"

	"gompi/internal/control/callreg"
)

// What a process computes in is found in its goroutines; those that wait have told
// the roll call.
func TestAtWork(t *testing.T) {
	const (
		main    = "main.run(0x1, {0x2, 0x3})\n\t/x/main.go:22 +0x1c\ngompi/mpi.Main(0x3)\n\t/x/mpi/main.go:40 +0x1\nmain.main()\n\t/x/main.go:9 +0x1\n"
		packs   = "goroutine 1 [running]:\ngompi/internal/data/dtype.(*Type).Pack(0x1)\n\t/x/pack.go:1 +0x1\ngompi/internal/engine.(*Engine).Collective(0x1)\n\t/x/c.go:1 +0x1\ngompi/mpi.Scatterv[...](0x1)\n\t/x/s.go:2 +0x1\n" + main
		sums    = "goroutine 2 [runnable]:\nmain.sum(...)\n\t/x/main.go:3 +0x1\ngompi/collectives/step.Run(0x1)\n\t/x/step.go:3\ngompi/internal/engine.(*coll).step(0x1)\n\t/x/c.go:1 +0x1\ngompi/mpi.Allreduce[...](...)\n\t/x/s.go:2 +0x1\n" + main
		sleeps  = "goroutine 3 [select]:\ntime.Sleep(0x1)\n\t/go/time.go:3 +0x1\nmain.op(0x1)\n\t/x/main.go:3 +0x1\ngompi/mpi.(*userOp[...]).kernel(0x1)\n\t/x/op.go:2 +0x1\ngompi/internal/engine.(*coll).step(0x1)\n\t/x/c.go:1 +0x1\ngompi/rma.(*Window).Fence(...)\n\t/x/s.go:2 +0x1\n" + main
		waits   = "goroutine 4 [chan receive, 2 minutes]:\ngompi/internal/engine/progress.(*Machine).Await(0x1)\n\t/x/wait.go:1 +0x1\ngompi/mpi.Recv[...](0x1)\n\t/x/s.go:2 +0x1\n" + main
		leads   = "goroutine 5 [runnable]:\ngompi/internal/engine/progress.(*Machine).Await(0x1)\n\t/x/wait.go:1 +0x1\ngompi/mpi.Recv[...](0x1)\n\t/x/s.go:2 +0x1\nmain.loop(...)\n\t/x/main.go:77 +0x1\n" + main
		user    = "goroutine 6 [running]:\nmain.compute(0x1)\n\t/x/main.go:3 +0x1\n" + main
		barrier = "goroutine 7 [running]:\ngompi/mpi.(*Comm).Barrier(0x1)\n\t/x/s.go:2 +0x1\nexample.com/a/solver.(*S).step(0x1)\n\t/x/solver.go:5 +0x1\ncreated by main.main in goroutine 1\n\t/x/main.go:5 +0x1\n"
		own     = "goroutine 8 [running]:\ngompi/internal/core.stacks()\n\t/x/stacks.go:2 +0x1\ncreated by gompi/internal/core.(*Process).Listen in goroutine 1\n\t/x/process.go:5 +0x1\n"
	)
	for stack, want := range map[string]string{
		packs: "Scatterv at main.go:22 main.run", sums: "Allreduce at main.go:22 main.run", sleeps: "Window.Fence at main.go:22 main.run",
		barrier: "Barrier at solver.go:5 solver.(*S).step", waits: "", leads: "", user: "", own: "",
	} {
		got := ""
		for _, e := range atWork([]byte(stack), []callreg.Entry{{Op: "Recv", Caller: "main.go:77 main.loop"}}) {
			if got += e.Op + " at " + e.Caller; !e.Running {
				t.Error("it is not said to run")
			}
		}
		if got != want {
			t.Errorf("%q, not %q, in\n%s", got, want, stack)
		}
	}
	if list := atWork([]byte(packs+"\n"+user+"\n"+barrier), nil); len(list) != 2 {
		t.Errorf("%+v", list)
	}
}
