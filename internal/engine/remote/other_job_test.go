// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
	"gompi/transport/inproc"
)

// TestOtherJob: a process of another job that has the same serial does not take
// its guard for its own: it asks the owner.
func TestOtherJob(t *testing.T) {
	hub := inproc.NewHub()
	owner := testProcess(t, hub, wire.ProcID{Job: testJob, Serial: 1})
	stranger := testProcess(t, hub, wire.ProcID{Job: testJob + 1, Serial: 1})
	r, err := owner.Expose(make([]byte, 64), 0)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Desc()
	target, f := stranger.Reach(owner.self, &d)
	ok(t, f)
	if target.path != isServed(target) || target.ctl != nil {
		t.Fatalf("path %T, control block %p", target.path, target.ctl)
	}
	ok(t, target.Put(buffer.Of([]byte{1, 0, 0, 0, 0, 0, 0, 0}), Layout{0, dtype.Byte, 8}))
	flush(t, target)
	owner.lock(r.ctl)
	const adds = 100
	done := make(chan *fault.Fault, 1)
	go func() {
		one := buffer.Of([]byte{1, 0, 0, 0, 0, 0, 0, 0})
		one.Type = basicOf(dtype.Int64)
		for range adds {
			if f := target.Accumulate(one, Layout{0, one.Type, 1}, kernel.Sum); f != nil {
				done <- f
				return
			}
		}
		done <- target.Flush(nil)
	}()
	waitUntil(t, owner, func() bool { return r.users > 0 })
	if v := binary.LittleEndian.Uint64(r.mem); v != 1 {
		t.Errorf("%d under the owner's guard, want 1", v)
	}
	owner.unlock(r.ctl)
	ok(t, soon(t, "accumulates", func() *fault.Fault { return <-done }))
	if v := binary.LittleEndian.Uint64(r.mem); v != 1+adds {
		t.Errorf("%d, want %d", v, 1+adds)
	}
}
