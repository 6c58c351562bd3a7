// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/control/callreg"
)

// A send and a receive that form one request (MPI_Isendrecv). Each is listed where others
// of its kind are, and reports to a coll that serves as their parent only.

// sendRecvs are the combined operations of a process.
type sendRecvs struct {
	process *process
	reqs    *requests
	sends   *sends
	recvs   *receives
	rounds  *schedules
}

// Pair starts a send and a receive as one request. Neither waits for the other. The
// request's status is the receive's. If the send fails, the request fails and the receive
// is withdrawn. Either may be nil; without a receive the status is none.
func (pr *sendRecvs) Pair(c *Context, op fault.Call, s *SendArgs, r *RecvArgs, none Status) Handle {
	pr.process.mu.Lock()
	m := pr.reqs.newRequest(reqPair)
	m.op = op
	m.ctx = c
	m.rank = callreg.NoPeer
	m.tag = callreg.NoTag
	m.status = none
	k := pr.rounds.newColl()
	k.sendRecv, k.req, k.ctx, k.pending = true, m, c, 1
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

// pairDone counts the end of a send or a receive.
func (pr *sendRecvs) pairDone(k *coll, r *Request) {
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

// pairSendFailed withdraws the receive, which may never be answered. The failure of the
// send outweighs the outcome of the receive.
func (pr *sendRecvs) pairSendFailed(k *coll, f *fault.Fault, rank, tag int32) {
	k.fault, k.req.rank, k.req.tag = f, rank, tag
	pr.pairWithdraw(k, f)
}

// pairExpired gives up a pair whose context.Context has ended.
func (pr *sendRecvs) pairExpired(k *coll, f *fault.Fault) {
	k.pending++
	pr.pairWithdraw(k, f)
	pr.pairEnded(k)
}

// pairWithdraw withdraws what is under way. The pair does not end before the call returns.
func (pr *sendRecvs) pairWithdraw(k *coll, f *fault.Fault) {
	for _, r := range k.started {
		if r.parent == k && !r.done {
			pr.sends.withdraw(r, f)
		}
	}
}

// pairEnded counts the end of one of the two.
func (pr *sendRecvs) pairEnded(k *coll) {
	if k.pending--; k.pending > 0 {
		return
	}
	m := k.req
	m.status.Fault = k.fault
	m.coll = nil
	pr.rounds.freeColl(k)
	pr.reqs.complete(m)
}
