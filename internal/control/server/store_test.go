// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

func TestStore(t *testing.T) {
	r := newRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	if _, err := a.Get(bg, "k", false); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("get before put: %v", err)
	}
	wait := controltest.Async(t, func() error {
		v, err := a.Get(bg, "k", true)
		if string(v) != "v1" {
			t.Errorf("got %q", v)
		}
		return err
	})
	r.parked(1)
	b.must(b.Put("k", []byte("v1")))
	a.must(wait())
	b.must(b.Put("k", make([]byte, protocol.MaxValue)))
	v, err := a.Get(bg, "k", false)
	if err != nil || len(v) != protocol.MaxValue {
		t.Errorf("%d bytes, %v", len(v), err)
	}
	if err := a.Put("k", make([]byte, protocol.MaxValue+1)); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("too large value: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	given := controltest.Async(t, func() error { _, err := a.Get(ctx, "never", true); return err })
	r.parked(1)
	cancel()
	if err := given(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled get: %v", err)
	}
	r.parked(0)
	left := r.sizes()["gets"]
	if left != 0 {
		t.Errorf("%d keys are still waited for", left)
	}
}

func TestFence(t *testing.T) {
	r := newRig(t, 3, nil)
	ks := r.joinAll()
	all := r.world.Members
	for range 3 {
		var waits []func() error
		for _, k := range ks {
			waits = append(waits, controltest.Async(t, func() error { return k.Fence(bg, all) }), controltest.Async(t, func() error { return k.Fence(bg, all) }))
		}
		for _, w := range waits {
			if err := w(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// One who gives up and comes again.
	ctx, cancel := context.WithCancel(bg)
	first := controltest.Async(t, func() error { return ks[0].Fence(ctx, all) })
	r.parked(1)
	cancel()
	if err := first(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.parked(0)
	one := controltest.Async(t, func() error { return ks[1].Fence(bg, all) })
	two := controltest.Async(t, func() error { return ks[2].Fence(bg, all) })
	r.parked(2)
	ks[0].must(ks[0].Fence(bg, all))
	ks[0].must(one())
	ks[0].must(two())
	if err := ks[0].Fence(bg, wire.MembersOf(ks[1].id)); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("fence of others: %v", err)
	}
	ks[0].must(ks[0].Fence(bg, wire.MembersOf(ks[0].id)))
	if n := r.sizes()["fences"]; n != 0 {
		t.Errorf("%d fences left", n)
	}
}
