// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

// What waits for slots of a lease is told to who decides, is granted as far as he allows
// it, and what is not needed any more goes back.
func TestLease(t *testing.T) {
	var mu sync.Mutex
	var use head.Use
	var cols []string
	e := newElastic(t, 2, func(c *Config) {
		c.Lease, c.Slots = 2, 8
		c.Used = func(u head.Use) {
			mu.Lock()
			defer mu.Unlock()
			use = u
		}
		c.Said = func(col []byte) {
			mu.Lock()
			defer mu.Unlock()
			cols = append(cols, string(col))
		}
	})
	uses := func(want head.Use) {
		t.Helper()
		controltest.WaitFor(t, fmt.Sprintf("%+v", want), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return use == want
		})
	}
	uses(head.Use{Has: 2})
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	uses(head.Use{Has: 2, Follows: true})

	a := ws[0]
	var b protocol.OpBody
	a.must(a.Ask(bg, &protocol.Submit{Request: change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{4}, Min: 4, Max: 6}, Parts: make([]protocol.SubmitPart, 1), COL: []byte("first")}, &b))
	if b.State != change.Queued {
		t.Fatalf("without slots: %+v", b)
	}
	uses(head.Use{Has: 2, Wants: 6, Least: 4, Follows: true})
	a.must(a.Ask(bg, &protocol.Update{Op: b.Op, COL: []byte("second")}, &protocol.Empty{}))
	if n := e.Lease(3).Has; n != 2 {
		t.Errorf("3 slots: %d", n)
	}
	if n := e.Lease(0).Has; n != 2 {
		t.Errorf("%d slots are kept that nobody uses", n)
	}
	if got := a.withdraw(b.Op); got.State != change.Cancelled {
		t.Errorf("withdrawn: %+v", got)
	}
	uses(head.Use{Has: 2, Follows: true})
	// NoQueue: there are none at once. More than there ever are: never.
	for _, r := range []change.Request{{Kind: change.Grow, In: []uint32{0}, Join: []int{1}, NoQueue: true}, {Kind: change.Grow, In: []uint32{0}, Join: []int{7}}} {
		if op := a.submit(r); op.State != change.Refused {
			t.Errorf("%+v: %+v", r, op)
		}
	}
	mu.Lock()
	if fmt.Sprint(cols) != "[first second]" {
		t.Errorf("it has said %q", cols)
	}
	mu.Unlock()

	op := a.submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{4}, Min: 4, Max: 6})
	uses(head.Use{Has: 2, Wants: 6, Least: 4, Follows: true})
	if n := e.Lease(5).Has; n != 5 {
		t.Errorf("5 slots: %d", n)
	}
	news := e.newcomers(0)
	if len(news) != 3 {
		t.Errorf("%d have come", len(news))
	}
	uses(head.Use{Has: 5, Follows: true})
	if got := a.withdraw(op.Op); got.State != change.Cancelled {
		t.Errorf("withdrawn: %+v", got)
	}
	for _, k := range news {
		e.Exited(k.id, "ended", true)
	}
	uses(head.Use{Has: 2, Follows: true})
	if n := e.Lease(0).Has; n != 2 {
		t.Errorf("%d slots are kept of newcomers that have ended", n)
	}

	// A spawn waits, and is refused if nobody decides.
	ctx, cancel := context.WithTimeout(bg, controltest.Limit)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := a.SpawnAll(ctx, &protocol.Spawn{Parts: []protocol.SpawnPart{{N: 2, Argv: []string{"x"}}}})
		done <- err
	}()
	uses(head.Use{Has: 2, Wants: 4, Least: 4, Follows: true})
	e.Lease(4)
	if err := <-done; err != nil {
		t.Errorf("a spawn that was given slots: %v", err)
	}
	uses(head.Use{Has: 4, Follows: true})
	began := time.Now()
	if _, err := a.SpawnAll(ctx, &protocol.Spawn{Parts: []protocol.SpawnPart{{N: 1, Argv: []string{"x"}}}}); err == nil || time.Since(began) < time.Second {
		t.Errorf("a spawn without slots: %v after %v", err, time.Since(began))
	}
	uses(head.Use{Has: 4, Follows: true})
}
