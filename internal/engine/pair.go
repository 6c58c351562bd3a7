// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/control/callreg"
)

// A send and a receive that are one request for whoever waits (MPI_Isendrecv).
// Both hang where others of their kind do, and report to a coll that is their
// parent only.

// pairs are those of a process.
type pairs struct {
	process *process
	reqs    *requests
	sends   *sends
	recvs   *receives
	rounds  *schedules
}

// Pair starts a send and a receive, which do not wait for each other, as one
// request. Its status is the receive's. If the send fails, so does the request,
// and the receive is withdrawn. Either may be nil; without a receive none is the
// status.
func (pr *pairs) Pair(c *Context, op fault.Call, s *SendArgs, r *RecvArgs, none Status) Handle {
	pr.process.mu.Lock()
	m := pr.reqs.newRequest(reqPair)
	m.op, m.ctx, m.rank, m.tag, m.status = op, c, callreg.NoPeer, callreg.NoTag, none
	k := pr.rounds.newColl()
	k.pair, k.req, k.ctx, k.pending = true, m, c, 1
	m.coll = k
	m.hang()
	bytes := int64(0)
	if r != nil {
		m.buf, m.user, m.rank, m.tag, bytes = r.Buf, r.User, r.Source, r.Tag, r.Buf.Bytes()
		k.pending++
		k.note(pr.recvs.startRecv(c, r, k))
	}
	if s != nil {
		m.user, bytes = s.User, max(bytes, s.Buf.Bytes())
		if p, f := c.dest(s.Dest); f != nil {
			pr.pairSendFailed(k, f, s.Dest, s.Tag)
		} else if !pr.sends.sendNow(c, p, s) {
			k.pending++
			k.note(pr.sends.startSend(c, p, s, k))
		}
	}
	pr.pairEnded(k)
	if !m.done {
		pr.process.leave(bytes)
	}
	h := Handle{m, m.gen}
	pr.process.mu.Unlock()
	return h
}

// pairDone books the end of a send or a receive.
func (pr *pairs) pairDone(k *coll, r *Request) {
	st, kind, rank, tag := r.status, r.kind, r.rank, r.tag
	pr.reqs.freeRequest(r)
	switch {
	case kind == reqRecv:
		if k.req.status = st; k.fault == nil {
			k.fault = st.Fault
		}
	case st.Fault != nil:
		pr.pairSendFailed(k, st.Fault, rank, tag)
	}
	pr.pairEnded(k)
}

// pairSendFailed withdraws the receive, which may never be answered. That the send
// failed outweighs what became of the other.
func (pr *pairs) pairSendFailed(k *coll, f *fault.Fault, rank, tag int32) {
	k.fault, k.req.rank, k.req.tag = f, rank, tag
	pr.pairWithdraw(k, f)
}

// pairExpired gives up a pair whose context has ended.
func (pr *pairs) pairExpired(k *coll, f *fault.Fault) {
	k.pending++
	pr.pairWithdraw(k, f)
	pr.pairEnded(k)
}

// pairWithdraw gives up what is under way of a pair, which does not end in it.
func (pr *pairs) pairWithdraw(k *coll, f *fault.Fault) {
	for _, r := range k.started {
		if r.parent == k && !r.done {
			pr.sends.withdraw(r, f)
		}
	}
}

// pairEnded counts the end of a part.
func (pr *pairs) pairEnded(k *coll) {
	if k.pending--; k.pending > 0 {
		return
	}
	m := k.req
	m.status.Fault = k.fault
	m.coll = nil
	pr.rounds.freeColl(k)
	pr.reqs.complete(m)
}
