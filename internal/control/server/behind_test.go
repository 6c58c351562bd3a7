// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// launched is a Spawn under way.
func (k *child) launched(n int) func() (wire.Set, error) {
	var s wire.Set
	done := controltest.Async(k.t, func() (err error) {
		s, err = k.Spawn(bg, nil, n)
		return err
	})
	return func() (wire.Set, error) { err := done(); return s, err }
}

// A launch by a process that a change concerns waits for the decision, whichever it is;
// others do not wait.
func TestLaunchWaitsForTheDecision(t *testing.T) {
	for name, decide := range map[string]func(e *elastic, op uint32, ws []*watcher, news []*child){
		"committed": func(e *elastic, op uint32, ws []*watcher, news []*child) {
			for _, w := range ws {
				w.checkVote()
			}
			news[0].must(news[0].Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op}))
		},
		"withdrawn": func(e *elastic, op uint32, ws []*watcher, news []*child) {
			ws[0].must(ws[0].Ask(bg, &protocol.Op{Kind: protocol.KindWithdraw, Op: op}, &protocol.OpBody{}))
		},
		"a death": func(e *elastic, op uint32, ws []*watcher, news []*child) {
			e.Exited(ws[1].id, "was killed", false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newElastic(t, 3, nil)
			ks := e.joinAll()
			set, err := ks[0].DefineSet(wire.MembersOf(ks[0].id, ks[1].id))
			ks[0].must(err)
			ws := []*watcher{ks[0].follow(set), ks[1].follow(set)}
			op := ws[0].submit(change.Request{Kind: change.Grow, In: []uint32{set.Number}, Join: []int{1}}).Op
			first, second := ws[0].launched(1), ws[0].launched(2)
			e.parked(2)
			news := e.newcomers(0)
			newcomers := news[0].launched(1)
			e.parked(3)
			if s, err := ks[2].Spawn(bg, nil, 1); err != nil || s.Members.Len() != 1 {
				t.Errorf("who has no part in it: %v, %v", s, err)
			}
			if e.sizes()["behind"] != 3 {
				t.Errorf("%v wait for the decision", e.sizes())
			}
			decide(e, op, ws, news)
			a, err1 := first()
			b, err2 := second()
			if err1 != nil || err2 != nil || a.Members.Len() != 1 || b.Members.Len() != 2 {
				t.Errorf("afterwards: %v, %v, %v, %v", a, err1, b, err2)
			}
			if _, err := newcomers(); (err == nil) != (name == "committed") {
				t.Errorf("of a newcomer: %v", err)
			}
			e.reach("behind", 0)
		})
	}
}

// A launch that waits ends also otherwise: by its context, by the end of who asks, and
// when no decision comes.
func TestLaunchNeedNotWait(t *testing.T) {
	var now atomic.Int64
	e := newElastic(t, 2, func(cfg *Config) {
		now.Store(1)
		cfg.Now = func() time.Duration { return time.Duration(now.Load()) }
		cfg.ToReady, cfg.ToAccept, cfg.ToCommit = time.Hour, time.Hour, time.Hour
	})
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	ws[0].submit(change.Request{Kind: change.Shrink, In: []uint32{0}, Leave: 1, ToCommit: 9 * time.Hour})
	ctx, cancel := context.WithCancel(bg)
	cancelled := controltest.Async(t, func() error {
		_, err := ws[0].Spawn(ctx, nil, 1)
		return err
	})
	e.parked(1)
	cancel()
	if err := cancelled(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	e.reach("behind", 0)
	late := ws[0].launched(1)
	e.parked(1)
	ws[0].checkVote() // the other one never comes
	now.Store(int64(4 * time.Hour))
	e.tick()
	if _, err := late(); !errors.Is(err, protocol.ErrUndecided) || !strings.Contains(err.Error(), "rank 0 has waited for operation 1, which is adopting, and waits for ") {
		t.Errorf("no decision: %v", err)
	}
	ws[1].launched(1)
	e.parked(1)
	ws[1].Close()
	e.Exited(ws[1].id, "was killed", false)
	e.reach("behind", 0)
}

// Processes of a launch take slots: there are never more than so many, and an operation
// waits for theirs.
func TestLaunchTakesSlots(t *testing.T) {
	e := newElastic(t, 2, func(cfg *Config) { cfg.Slots = 4 })
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	for _, n := range []int{3, 5} {
		if _, err := ws[0].Spawn(bg, nil, n); !errors.Is(err, protocol.ErrRefused) || !strings.Contains(err.Error(), "2 slots free") {
			t.Errorf("%d processes more: %v", n, err)
		}
	}
	s, err := ws[0].Spawn(bg, nil, 2)
	ws[0].must(err)
	op := ws[0].submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{1}})
	if op.State != change.Queued {
		t.Errorf("with all slots taken it is %v", op.State)
	}
	e.Exited(s.Members.At(1), "exited with status 0", true)
	if b := ws[0].await(op.Op, change.Granted); b.State < change.Granted || b.State > change.Ready {
		t.Errorf("with one slot free it is %v", b.State)
	}
	if _, err := ws[1].Spawn(bg, nil, 5); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("what can never be waits for no decision: %v", err)
	}
}
