// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// family is a spawn whose children are to join.
func (k *child) family(ctx context.Context, parents wire.Members, n int) func() (protocol.SpawnBody, error) {
	var b protocol.SpawnBody
	done := controltest.Async(k.t, func() (err error) {
		b, err = k.SpawnAll(ctx, &protocol.Spawn{Parts: []protocol.SpawnPart{{N: n, Argv: []string{"x"}}}, Parents: parents, Joins: true})
		return err
	})
	return func() (protocol.SpawnBody, error) { err := done(); return b, err }
}

// started waits for the i-th call of Start.
func (r *rig) started(i int) []protocol.StartProc {
	r.t.Helper()
	controltest.WaitFor(r.t, "a start", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.spawns) > i
	})
	return r.spawned(i)
}

func discardRig(t *testing.T, n int, change func(*Config)) *rig {
	var r *rig
	r = newRig(t, n, func(c *Config) {
		c.Discard = func(procs []wire.ProcID) {
			for _, p := range procs {
				r.note(fmt.Sprint("discarded ", p.Serial))
			}
		}
		if change != nil {
			change(c)
		}
	})
	return r
}

// A spawn whose children join is answered with the last of them, and all parents hold
// their set.
func TestSpawnJoins(t *testing.T) {
	r := discardRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	parents := wire.MembersOf(b.id, a.id)
	done := a.family(bg, parents, 2)
	procs := r.started(0)
	first := r.joinAs(procs[0], os.Getpid())
	first.settle()
	r.parked(1) // it is not answered before all have joined
	second := r.joinAs(procs[1], os.Getpid())
	body, err := done()
	a.must(err)
	if !first.w.Intercomm || !second.w.Intercomm || first.w.Parent.Number != body.Parent.Number || !reflect.DeepEqual(body.Parent.Members, parents) || body.World.Number != second.w.World.Number || body.Counts[0] != 2 {
		t.Errorf("welcomed with %+v, answered %+v", first.w, body)
	}
	for _, c := range []*child{first, second} {
		c.must(c.Finalize())
		r.Exited(c.id, "exit status 0", true)
	}
	b.settle()
	b.must(b.Watch(body.World.Members)) // late, but they are not forgotten
	for range 2 {
		if ev := b.next(); ev.Kind != protocol.EvGone || ev.Text != protocol.LeftInOrder {
			t.Errorf("a child %+v", ev)
		}
	}
	for _, p := range []*child{a, b} {
		p.must(p.ReleaseSet(body.World.Number))
		p.settle()
	}
	if _, err := a.Lookup(body.World.URI); !errors.Is(err, protocol.ErrSetGone) {
		t.Errorf("the children's set: %v", err)
	}
}

// One that ends before it has joined fails the spawn, and the others are not wanted; so
// they are when who asks has ended or gives up.
func TestSpawnDoesNotJoin(t *testing.T) {
	for name, end := range map[string]func(r *rig, a *child, procs []protocol.StartProc, cancel func()){
		"a child is killed": func(r *rig, a *child, procs []protocol.StartProc, cancel func()) {
			r.Started(procs[1].Proc, os.Getpid())
			r.Exited(procs[1].Proc, "was killed", false)
		},
		"a child returns": func(r *rig, a *child, procs []protocol.StartProc, cancel func()) {
			r.Started(procs[1].Proc, os.Getpid())
			r.Exited(procs[1].Proc, "exit status 0", true)
		},
		"cancelled": func(r *rig, a *child, procs []protocol.StartProc, cancel func()) { cancel() },
		"who asks is killed": func(r *rig, a *child, procs []protocol.StartProc, cancel func()) {
			a.Close()
			r.Exited(a.id, "was killed", false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := discardRig(t, 1, nil)
			a := r.join(0)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			done := a.family(ctx, wire.MembersOf(a.id), 2)
			procs := r.started(0)
			k := r.joinAs(procs[0], os.Getpid())
			k.settle()
			end(r, a, procs, cancel)
			r.await(fmt.Sprint("discarded ", k.id.Serial))
			body, err := done()
			if err == nil || strings.HasPrefix(name, "a child") && (!errors.Is(err, protocol.ErrRefused) || !strings.Contains(err.Error(), "rank 1 of the processes that were to join") || body.Part != 0) {
				t.Errorf("%+v, %v", body, err)
			}
			k.Close()
			for _, p := range procs {
				r.Exited(p.Proc, "was killed", false)
			}
		})
	}
}

// A parent that cannot tell the others of their children gives them up for all: nobody
// holds their set, and they are not wanted.
func TestForsake(t *testing.T) {
	r := discardRig(t, 3, nil)
	a, b, c := r.join(0), r.join(1), r.join(2)
	done := a.family(bg, wire.MembersOf(a.id, b.id), 2)
	procs := r.started(0)
	for _, sp := range procs {
		r.joinAs(sp, os.Getpid())
	}
	body, err := done()
	a.must(err)
	forsake := &protocol.Set{Kind: protocol.KindForsake, Number: body.World.Number}
	c.must(c.Tell(forsake)) // it is no parent
	c.must(c.Tell(&protocol.Set{Kind: protocol.KindForsake, Number: r.world.Number}))
	c.settle()
	if r.noted(fmt.Sprint("discarded ", procs[0].Proc.Serial)) {
		t.Fatal("a stranger has discarded children")
	}
	a.settle() // looks up a set
	held := r.sizes()["given sets"]
	a.must(a.Tell(forsake))
	a.must(a.Tell(forsake))
	a.settle()
	for _, sp := range procs {
		r.await(fmt.Sprint("discarded ", sp.Proc.Serial))
	}
	if n := r.sizes()["given sets"]; n != held-2 {
		t.Errorf("%d sets are held, %d before", n, held)
	}
	b.must(b.ReleaseSet(body.World.Number)) // which it holds no more
	for _, sp := range procs {
		r.Exited(sp.Proc, "exit status 0", true)
	}
	b.settle()
	if _, err := b.Lookup(body.World.URI); err != nil && !errors.Is(err, protocol.ErrSetGone) {
		t.Error(err)
	}
}

// TestSpawnTooLong holds that a spawn whose command lines are too long for a frame is refused, and
// that the connection lives on.
func TestSpawnTooLong(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.join(0)
	for _, words := range []int{5, 6} {
		argv := make([]string, words)
		for i := range argv {
			argv[i] = strings.Repeat("x", 900<<10)
		}
		m := &protocol.Spawn{Parts: []protocol.SpawnPart{{N: 1, Argv: argv}}}
		if _, err := a.SpawnAll(bg, m); !errors.Is(err, protocol.ErrRefused) {
			t.Errorf("%d words of 900 KiB: %v", words, err)
		}
		if err := a.Ask(bg, m, &protocol.SpawnBody{}); !errors.Is(err, protocol.ErrTooMany) {
			t.Errorf("%d words of 900 KiB, unchecked: %v", words, err)
		}
		a.settle()
	}
}
