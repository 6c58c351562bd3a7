// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"testing"

	"gompi/internal/base/fault"
)

// retired is how Retire has ended.
type retired struct {
	undone []string
	f      *fault.Fault
}

// Who leaves gives up receives, waits for its sends, and says what it had begun.
func TestRetire(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	a, b, c := ns[0], ns[1], ns[2]
	never := a.irecv(2, 5, make([]byte, 8))
	blocked := make(chan *fault.Fault, 1)
	go func() {
		_, f := a.recv(anySource, 6, make([]byte, 8))
		blocked <- f
	}()
	a.asleep(t)
	if f := a.send(2, 1, []byte("eager")); f != nil { // nobody has asked for it
		t.Fatal(f)
	}
	large := pattern(make([]byte, 1<<20), 3)
	sent := a.isend(1, 2, large, Standard)

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	undone, f := a.Retire(ended)
	wantClass(t, "Retire in vain", f, fault.Cancelled)
	want := []string{"Irecv from rank 2, tag 5, ", "Recv from rank any, tag 6, ", "Isend to rank 1, tag 2, "}
	for i := range want {
		want[i] += a.ctx.ID.Label()
	}
	slices.Sort(undone[:2])
	if !slices.Equal(undone, want) {
		t.Errorf("undone: %q, want %q", undone, want)
	}
	wantClass(t, "a receive that another goroutine waits for", soon(t, "Recv", func() *fault.Fault { return <-blocked }), fault.Cancelled)

	done := make(chan retired, 1)
	go func() {
		undone, f := a.Retire(context.Background())
		done <- retired{undone, f}
	}()
	got := make([]byte, len(large))
	if _, f := b.recv(0, 2, got); f != nil {
		t.Fatal(f)
	}
	if err := checkPattern(got, 3); err != nil {
		t.Error(err)
	}
	end := soon(t, "Retire", func() retired { return <-done })
	if end.f != nil || len(end.undone) > 0 {
		t.Errorf("undone: %q, %v", end.undone, end.f)
	}
	if n := a.Live(); n > 0 {
		t.Errorf("%d requests are to be waited for", n)
	}
	wantClass(t, "what was withdrawn", a.Wait(never).Status.Fault, fault.Cancelled)
	wantClass(t, "what was sent", a.Wait(sent).Status.Fault, fault.OK)

	// The others need nothing of it, and learn that it has gone.
	c.ProcGone(a.Self(), "")
	if _, f := c.recv(0, 1, make([]byte, 5)); f != nil {
		t.Errorf("what had left before: %+v", f)
	}
	_, f = c.recv(0, 1, make([]byte, 5))
	wantClass(t, "a receive from who has left", f, fault.Left)
	wantClass(t, "a send to who has left", c.send(0, 1, []byte("late")), fault.Left)
}
