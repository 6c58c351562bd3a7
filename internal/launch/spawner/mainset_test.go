// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
	"gompi/internal/launch"
)

// After a change each member runs where it would if the job had started so. One that
// shares a core with others when it comes begins there, and is let go a little later,
// also if it has become a member meanwhile.
func TestPlacesAfterAChange(t *testing.T) {
	a := newAlone(t, &launch.Options{Apps: []launch.App{{}}, Stdin: launch.StdinNone})
	if len(a.topo.Cores) < 2 {
		t.Skip("one core")
	}
	n := len(a.topo.Cores)
	list := sleepers(n + 1)
	for i := range list[:n] {
		list[i].First = true
	}
	a.Start(list[:n])
	a.until(launch.EvBegun)
	a.Start(list[n:])
	a.until(launch.EvBegun)
	main := func(list []launch.Start, want func(i int) cpus.Set) {
		t.Helper()
		var procs []wire.ProcID
		for _, s := range list {
			procs = append(procs, s.Proc)
		}
		a.SetMain(append(procs, wire.ProcID{Job: 1, Serial: 99})) // and one of another host
		for len(a.work) > 0 {
			(<-a.work)()
		}
		for i, s := range list {
			var at unix.CPUSet
			unix.SchedGetaffinity(a.byID[s.Proc].pid, &at)
			if got := cpus.FromMask(&at); got.String() != want(i).String() {
				t.Errorf("%d of %d runs on %v, want %v", i, len(list), got, want(i))
			}
		}
	}
	place := func(n int) func(i int) cpus.Set {
		return func(i int) cpus.Set { return a.topo.Binding("core", i, n) }
	}
	main(list[:n], place(n))
	begins := func(i int) cpus.Set {
		if i < n {
			return a.topo.All
		}
		return a.topo.Cores[0]
	}
	main(list, begins)
	if c := a.byID[list[n].Proc]; !c.spread {
		t.Error("one that came later is not to be let go")
	} else {
		for c.spread {
			a.step()
		}
	}
	main(list, func(int) cpus.Set { return a.topo.All })
	main(list[n-1:], place(2))
	main(list[n:], place(1))
}

// Who becomes the reader goes on where the last one has read to.
func TestStdinMoves(t *testing.T) {
	a := newAlone(t, &launch.Options{Apps: []launch.App{{}}})
	a.in, a.stdin = io.MultiReader(strings.NewReader("one\ntwo\n"), forever{}), nil
	list := sleepers(2)
	list[0].First = true
	a.Start(list)
	a.until(launch.EvBegun)
	a.SetMain([]wire.ProcID{list[0].Proc, list[1].Proc})
	plane := a.control.(*noPlane)
	if plane.stdin != nil {
		t.Fatalf("%d is the reader already", plane.reader)
	}
	read := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(plane.stdin, b); err != nil || string(b) != want {
			t.Errorf("%q, %v; want %q", b, err, want)
		}
	}
	for _, c := range []struct {
		main []wire.ProcID
		want string
	}{{[]wire.ProcID{list[1].Proc}, "one\n"}, {[]wire.ProcID{list[0].Proc, list[1].Proc}, "two\n"}} {
		a.SetMain(c.main)
		if plane.stdin == nil || plane.reader != c.main[0] {
			t.Fatalf("%d is the reader, want %v", plane.reader, c.main[0])
		}
		read(c.want)
		plane.stdin.Close()
		plane.stdin = nil
		if a.SetMain(c.main); plane.stdin != nil {
			t.Error("the reader gets it twice")
		}
	}
}

// forever has nothing to read.
type forever struct{}

func (forever) Read([]byte) (int, error) { select {} }

func (n *noPlane) Stdin(p wire.ProcID, fd int) {
	n.reader, n.stdin = p, os.NewFile(uintptr(fd), "stdin")
}
