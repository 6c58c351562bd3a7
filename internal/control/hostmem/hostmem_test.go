// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostmem_test

import (
	"bytes"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"gompi/internal/control/controltest"
	"gompi/internal/control/hostmem"
	"gompi/internal/host/segment"
	"gompi/internal/test/testjob"
)

// job starts processes that are alive until the end of the test, and returns what each of
// them asks the agent by.
func job(t testing.TB, n int) (*testjob.Job, []hostmem.Control) {
	t.Helper()
	j := testjob.New(t)
	var list []hostmem.Control
	for _, sp := range j.Add(n) {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Kill(p) })
		list = append(list, p.Core().Process().Control)
	}
	return j, list
}

func open(t testing.TB, c hostmem.Control, bytes int64, guard bool) *hostmem.Memory {
	t.Helper()
	x, err := hostmem.Open(t.Context(), c, "x", bytes, hostmem.Options{Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func none(t *testing.T, j *testjob.Job) {
	t.Helper()
	controltest.WaitFor(t, "the agent has no memory", func() bool { return j.Server.Sizes()["memories"] == 0 })
}

// All who open a name have the same bytes, as long as one of them has it open.
func TestOpen(t *testing.T) {
	const n = 5*4096 + 100
	j, procs := job(t, 2)
	x := []*hostmem.Memory{open(t, procs[0], n, false), open(t, procs[1], n, false)}
	if len(x[0].Bytes()) != n || x[0].Host() != x[1].Host() {
		t.Errorf("%d bytes of host %d and %d", len(x[0].Bytes()), x[0].Host(), x[1].Host())
	}
	for k, r := range []hostmem.Range{{Lo: 0, Hi: n / 2}, {Lo: n / 2, Hi: n}} {
		if _, err := x[k].Fill(r); err != nil {
			t.Fatal(err)
		}
		for i := r.Lo; i < r.Hi; i++ {
			x[k].Bytes()[i] = byte(i%100) + 1
		}
	}
	for i, b := range x[1].Bytes() {
		if b != byte(i%100)+1 || b != x[0].Bytes()[i] {
			t.Fatalf("byte %d is %d, and %d", i, b, x[0].Bytes()[i])
		}
	}
	if _, err := hostmem.Open(t.Context(), procs[0], "x", n, hostmem.Options{}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("opened twice: %v", err)
	}
	if err := x[0].Punch([]hostmem.Range{{Lo: 0, Hi: 4097}, {Lo: 3*4096 - 1, Hi: 3 * 4096}}); err != nil {
		t.Fatal(err)
	}
	for page := range 6 {
		zero := len(bytes.Trim(x[1].Bytes()[page*4096:min(n, (page+1)*4096)], "\x00")) == 0
		if want := page >= 3; zero != want {
			t.Errorf("page %d is empty: %v", page, zero)
		}
	}
	if err := errors.Join(x[0].Close(), x[1].Close()); err != nil {
		t.Error(err)
	}
	none(t, j)
	y := open(t, procs[0], n+1, false)
	if _, err := y.Fill(hostmem.Range{Lo: 0, Hi: n}); err != nil {
		t.Error(err)
	}
	if len(bytes.Trim(y.Bytes()[:n], "\x00")) != 0 {
		t.Error("new memory is not empty")
	}
	if err := y.Close(); err != nil {
		t.Error(err)
	}
	none(t, j)
}

// Memory of who has died goes.
func TestDeath(t *testing.T) {
	j := testjob.New(t)
	sp := j.Add(1)[0]
	p, err := j.Boot(sp)
	if err != nil {
		t.Fatal(err)
	}
	x := open(t, p.Core().Process().Control, 1<<20, false)
	if n := j.Server.Sizes()["memories"]; n != 1 {
		t.Errorf("%d memories", n)
	}
	j.Kill(p)
	none(t, j)
	_ = x.Close() // the mapping, of who is a goroutine
}

// faults reports whether writing a byte is a fault.
func faults(b []byte, i int) (is bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { is = recover() != nil }()
	b[i]++
	return false
}

// With guard whole pages of others are a fault, and pages that are shared with them are not.
func TestGuard(t *testing.T) {
	page := int64(os.Getpagesize())
	_, procs := job(t, 1)
	all := hostmem.Range{Lo: 0, Hi: 8*page - 10}
	x := open(t, procs[0], all.Hi, true)
	defer x.Close()
	is := func(want string) {
		t.Helper()
		var got strings.Builder
		for p := range 8 {
			if faults(x.Bytes(), p*int(page)+7) {
				got.WriteByte('-')
			} else {
				got.WriteByte('x')
			}
		}
		if got.String() != want {
			t.Errorf("pages %s, want %s", got.String(), want)
		}
	}
	own := func(want string, list ...hostmem.Range) {
		t.Helper()
		if err := x.Own(list...); err != nil {
			t.Fatal(err)
		}
		is(want)
		if _, err := x.Fill(all); err != nil {
			t.Fatal(err)
		}
		is(want)
	}
	own("--------")
	own("-xxx----", hostmem.Range{Lo: page + 5, Hi: 3*page + 1})
	own("--x----x", hostmem.Range{Lo: 2 * page, Hi: 3 * page}, hostmem.Range{Lo: 5 * page, Hi: 5 * page}, hostmem.Range{Lo: 7 * page, Hi: all.Hi})
	own("--------")
	own("xxxxxxxx", all)
}

// What the host has not is refused before any of it is taken.
func TestNoMemory(t *testing.T) {
	n := segment.FreeMemory() + 1<<30
	_, procs := job(t, 1)
	x := open(t, procs[0], n, false)
	defer x.Close()
	var short *segment.NoMemoryError
	if taken, err := x.Fill(hostmem.Range{Lo: 0, Hi: n}); taken != 0 || !errors.As(err, &short) || short.Need < n {
		t.Errorf("%d bytes: %v", n, err)
	}
	there := make([]byte, 16)
	if err := mincore(x.Bytes()[:16*os.Getpagesize()], there); err != nil || len(bytes.Trim(there, "\x00")) != 0 {
		t.Errorf("pages %v, %v", there, err)
	}
	for _, want := range []int64{1 << 20, 0} {
		if taken, err := x.Fill(hostmem.Range{Lo: 0, Hi: 1 << 20}); taken != want || err != nil {
			t.Errorf("%d bytes taken of %d, %v", taken, want, err)
		}
	}
}
