// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/internal/test/testlab"
	"gompi/transport"
	"gompi/transport/faulty"
	"gompi/transport/transporttest"
)

// fabric keeps the segments of a test's processes, as an agent does.
type fabric struct {
	transporttest.Envs
	files map[wire.ProcID][2]int // segment, bell
	pid   int                    // told in contacts
}

func newFabric(settings map[string]string) *fabric {
	f := &fabric{files: make(map[wire.ProcID][2]int), pid: os.Getpid()}
	f.Settings = settings
	return f
}

func (f *fabric) close() {
	for _, fds := range f.files {
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
}

func (f *fabric) Open(t *testing.T, proc wire.ProcID) transport.Transport {
	t.Helper()
	return f.open(t, proc)
}

func (f *fabric) open(t testing.TB, proc wire.ProcID) *Transport {
	t.Helper()
	seg, bell, err := segment.Create()
	if err != nil {
		t.Fatal(err)
	}
	if err := segment.SetOwner(seg, proc); err != nil {
		t.Fatal(err)
	}
	f.files[proc] = [2]int{seg, bell}
	env := f.Env(proc)
	env.Segment, env.Bell = seg, bell
	tr, err := Open(env)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (f *fabric) Contact(of, _ wire.ProcID) wire.Contact {
	fds := f.files[of]
	return wire.Contact{Proc: of, SameHost: true, PID: f.pid, Segment: dup(fds[0]), Bell: dup(fds[1])}
}

func (f *fabric) Wakes(wire.ProcID) <-chan struct{} { return nil }

func dup(fd int) int {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	return n
}

// noCMA are the tests that need what GOMPI_CMA=off forbids.
var noCMA = map[string]string{"Memory": "CMA is off", "MemoryHostile": "CMA is off"}

// TestDenied: memory that may not be copied is not reached, so that others are
// asked instead.
func TestDenied(t *testing.T) {
	a, b := wire.ProcID{Job: 4, Serial: 1}, wire.ProcID{Job: 4, Serial: 2}
	for _, c := range []struct {
		name, cma string
		pid       int
		far       bool
		want      error
	}{
		{"off", "off", os.Getpid(), false, transport.ErrUnavailable},
		{"no pid", "", 0, false, transport.ErrUnavailable},
		{"another process", "", 1, false, nil},
		{"another host", "", os.Getpid(), true, transport.ErrUnavailable},
	} {
		f := newFabric(map[string]string{"GOMPI_CMA": c.cma})
		f.pid = c.pid
		ta, tb := f.open(t, a), f.open(t, b)
		fds := countFDs(t)
		key, value := tb.Proof()
		contact := f.Contact(b, a)
		contact.SameHost = !c.far
		if _, err := ta.Reach(contact, key, value); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := countFDs(t); n != fds {
			t.Errorf("%s: %d descriptors are left", c.name, n-fds)
		}
		ta.Close()
		tb.Close()
		f.close()
	}
}

// awkward is a fabric whose transports are under a plan, with all that they can.
type awkward struct {
	*fabric
	plan faulty.Plan
}

func (f awkward) Open(t *testing.T, proc wire.ProcID) transport.Transport {
	t.Helper()
	p := f.plan
	p.Seed, p.Wake = uint64(proc.Serial), f.Env(proc).Wake
	tr, err := faulty.New(f.open(t, proc), p)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestConformanceAwkward: under a plan the transport keeps its contract, that of
// its capabilities included, and they are used.
func TestConformanceAwkward(t *testing.T) {
	tally := &faulty.Counters{}
	o := transporttest.Options{Rounds: 20, MaxBulkBytes: 1 << 20, Skip: map[string]string{
		"NoAllocations": "a send refused at random cannot be counted",
		"WakeWritable":  "a sender refused at random waits awake for the Poll that ends it",
	}}
	transporttest.RunWith(t, o, func(t *testing.T) transporttest.Fabric {
		f := newFabric(nil)
		t.Cleanup(f.close)
		return awkward{f, faulty.Plan{Delay: 0.2, Full: 0.2, MaxEvents: 3, Counters: tally}}
	})
	for what, n := range map[string]int64{
		"reserved": tally.Reserved.Load(), "shared": tally.Shared.Load(), "joined": tally.Joined.Load(),
		"reached": tally.Reached.Load(), "read": tally.Read.Load(), "written": tally.Written.Load(), "refused": tally.Full.Load(),
	} {
		if n == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}

// The short form does fewer rounds under all settings but the default ones.
func TestConformance(t *testing.T) {
	few := testlab.Rounds(25, 100)
	for _, v := range []struct {
		name     string
		settings map[string]string
		options  transporttest.Options
	}{
		{"default", nil, transporttest.Options{}},
		{"noduplex", map[string]string{"GOMPI_DUPLEX": "off"}, transporttest.Options{Rounds: few}},
		{"nocma", map[string]string{"GOMPI_CMA": "off"}, transporttest.Options{Rounds: few, Skip: noCMA}},
		{"tiny", map[string]string{"GOMPI_RING": "4096"}, transporttest.Options{Rounds: few}},
		{"tiny-nocma", map[string]string{"GOMPI_RING": "4096", "GOMPI_CMA": "off"}, transporttest.Options{Rounds: few, MaxBulkBytes: 1 << 20, Skip: noCMA}},
	} {
		t.Run(v.name, func(t *testing.T) {
			transporttest.RunWith(t, v.options, func(t *testing.T) transporttest.Fabric {
				f := newFabric(v.settings)
				t.Cleanup(f.close)
				return f
			})
		})
	}
}
