// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"runtime"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
)

// hangsTogether checks that what has not ended, and nothing else, hangs where its
// end is looked for.
func (n *node) hangsTogether(t testing.TB) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	onPeer := map[*Request]*Peer{}
	for _, p := range n.peers {
		for r := range p.ops.All {
			onPeer[r] = p
		}
	}
	onCtx := map[*Request]*Context{}
	for _, c := range n.contexts {
		for r := range c.ops.All {
			onCtx[r] = c
		}
		for r := range c.anys.All {
			onCtx[r] = c
		}
		for i := range c.from {
			for r := range c.from[i].All {
				onCtx[r] = c
			}
		}
		for k := range c.colls.All {
			onCtx[k.req] = c
		}
	}
	announced := map[*arrival]*Peer{}
	for _, p := range n.peers {
		for a := range p.announcements.All {
			announced[a] = p
		}
	}
	for a := range n.table.Walk {
		if u := a.Val; (announced[u] == u.peer) != (u.kind == kindRTS) {
			t.Errorf("an arrival of kind %d hangs on the list of %v", u.kind, announced[u])
		}
	}
	for _, chunk := range n.pool.chunks {
		for i := range chunk {
			r := &chunk[i]
			open := r.kind != reqFree && !r.done
			named := r.kind == reqSend || r.kind == reqRecv && r.peer != nil || r.kind == reqPart
			if p := onPeer[r]; (p != nil) != (open && named) || p != nil && r.peer != nil && r.peer != p {
				t.Errorf("request %d of kind %d, open %v: on a peer's list: %v", r.index, r.kind, open, p != nil)
			}
			if c := onCtx[r]; n.contexts[wireID(r)] != nil && (c != nil) != (open && !r.isStep()) || c != nil && c != r.ctx {
				t.Errorf("request %d of kind %d, open %v: on a communicator's list: %v", r.index, r.kind, open, c != nil)
			}
		}
	}
}

// wireID is the id of a request's communicator, if it has one.
func wireID(r *Request) (id wire.ContextID) {
	if r.ctx != nil {
		id = r.ctx.ID
	}
	return id
}

// Who ends, or frees or revokes a communicator, does not look at what is pending
// with others.
func TestEndsLookAtTheirOwn(t *testing.T) {
	const many = 100_000
	ns, _ := testJobOf(t, 3, nil, nil)
	n, buf := ns[0], make([]byte, 8)
	small := n.world(t, wire.ContextID{Creator: wire.ProcID{Job: testJob}, Serial: 2}, n.ctx.Members)
	for range many / 2 {
		n.irecv(1, 1, buf)
	}
	for range many / 2 {
		n.isend(1, 1, buf, Synchronous)
	}
	from := func(c *Context, source int32) Handle {
		return n.Irecv(c, &RecvArgs{Op: "Irecv", Buf: buffer.Of(buf), Source: source, Tag: 9})
	}
	dead, any, freed := from(n.ctx, 2), from(n.ctx, anySource), from(small, 1)
	sync := n.isend(2, 1, buf, Synchronous)

	within(t, "the other's rest", func() bool {
		ns[1].mu.Lock()
		defer ns[1].mu.Unlock()
		return ns[1].table.ArrivedLen() == many/2
	})
	quietly := func(what string, f func()) {
		t.Helper()
		n.mu.Lock()
		defer n.mu.Unlock()
		defer n.peers[proc(2)].ops.Poison()()
		defer n.ctx.ops.Poison()()
		defer n.ctx.from[1].Poison()()
		chunks := n.pool.chunks
		n.pool.chunks = make([]*[chunkLen]Request, len(chunks))
		defer func() { n.pool.chunks = chunks }()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > many {
			t.Errorf("%s: %d bytes were allocated, as if for all that is pending", what, grown)
		}
	}
	quietly("death", func() {
		d := &departure{how: "was killed", class: fault.ProcFailed}
		n.dead[proc(3)] = d
		n.departed(proc(3), d)
	})
	for what, h := range map[string]Handle{"receive from the dead": dead, "receive from any": any, "send to the dead": sync} {
		wantClass(t, what, soon(t, what, func() Outcome { return n.Wait(h) }).Status.Fault, fault.ProcFailed)
	}
	quietly("revocation", func() { n.revoke(small) })
	wantClass(t, "receive", soon(t, "receive", func() Outcome { return n.Wait(freed) }).Status.Fault, fault.Revoked)
	n.FreeContext(small)
}
