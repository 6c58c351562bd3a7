// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// frame handles one frame of a process that has said hello. The body is only
// borrowed. An error means that the process broke the protocol.
func (h *Head) frame(p *proc, f protocol.Frame) error {
	if err := f.CheckNumber(); err != nil {
		return err
	}
	switch {
	case f.ID == 0:
		return h.oneWay(p, f)
	case p.reqs[f.ID] != nil:
		return fmt.Errorf("request number %d is in use", f.ID)
	}
	return h.request(p, f)
}

func (h *Head) oneWay(p *proc, f protocol.Frame) error {
	switch f.Kind {
	case protocol.KindFinalize:
		return h.finalizes(p, f)
	case protocol.KindIdle, protocol.KindBusy:
		if err := protocol.Decode(&protocol.Empty{Kind: f.Kind}, f.Body); err != nil {
			return err
		}
		if p.state == protocol.Joined {
			p.idle = f.Kind == protocol.KindIdle
		}
	case protocol.KindAnnounce:
		var m protocol.Announce
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		p.announced, p.addrs = true, m.Addrs
		h.answerContacts(p.awaited)
	case protocol.KindWatch:
		m := protocol.Members{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.watch(p, m.Members)
	case protocol.KindCut:
		var m protocol.Cut
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		if q := h.proc(m.Proc); q != nil && q.via != nil {
			h.sayAbroad(p, q, protocol.NeighborCut, 0, m.Text)
		} else if q != nil && q != p && p.state == protocol.Joined {
			h.sendEvent(q, protocol.Event{Kind: protocol.EvCut, Proc: p.id, Text: m.Text})
		}
	case protocol.KindPing, protocol.KindPong:
		m := protocol.Ping{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.ping(p, h.proc(m.Proc), f.Kind, m.ID)
	case protocol.KindReachable:
		m := protocol.Abroad{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.reached(p, m.Job)
	case protocol.KindRelease:
		var m protocol.Release
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.release(p, m.Number, m.Had)
	case protocol.KindUnfollow, protocol.KindForsake:
		m := protocol.Set{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		switch {
		case f.Kind == protocol.KindUnfollow:
			h.unfollow(p, m.Number)
		case p.state == protocol.Joined:
			h.forsake(p, m.Number)
		}
	case protocol.KindUndecided:
		var m protocol.Undecided
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.undecided(p, &m)
	case protocol.KindForget, protocol.KindReleased, protocol.KindReadied, protocol.KindProgress, protocol.KindVoted, protocol.KindCompleted:
		m := protocol.Op{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.opOf(p, f.Kind, m.Op)
	case protocol.KindGiveBack:
		var m protocol.GiveBack
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.giveBack(p, m.Members)
	case protocol.KindStacks:
		var m protocol.Stacks
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.reported(p, &m)
	case protocol.KindCancel:
		var m protocol.Cancel
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		if w := p.reqs[m.ID]; w != nil {
			h.cancel(w)
		}
	}
	return nil
}

// finalizes is the frame by which p leaves in order.
func (h *Head) finalizes(p *proc, f protocol.Frame) error {
	if err := protocol.Decode(&protocol.Empty{Kind: f.Kind}, f.Body); err != nil {
		return err
	}
	h.finalize(p)
	return nil
}

func (h *Head) request(p *proc, f protocol.Frame) error {
	switch f.Kind {
	case protocol.KindAbort:
		var m protocol.Abort
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		if abort := h.cfg.Aborted; abort != nil {
			by := p.id
			h.out = append(h.out, Effect{Call: func() { abort(by, m.Code, m.Text) }})
		}
		h.answer(p, f.ID, nil)
		return nil
	case protocol.KindFinalize:
		if err := h.finalizes(p, f); err != nil {
			return err
		}
		h.answer(p, f.ID, nil)
		return nil
	}
	if p.state != protocol.Joined {
		h.refuse(p, f.ID, protocol.NotIn(p.id, p.state))
		return nil
	}
	switch f.Kind {
	case protocol.KindContact:
		m := protocol.Proc{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.contact(p, &f, m.Proc)
	case protocol.KindLookup:
		m := protocol.Text{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		if set, err := h.lookup(p, m.Text); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.give(p, set.Number)
			h.answer(p, f.ID, h.describe(p, set))
		}
	case protocol.KindDescribe:
		m := protocol.Set{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		if _, err := h.living(m.Number); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.answer(p, f.ID, h.describe(p, h.set(m.Number)))
		}
	case protocol.KindMain:
		m := protocol.Set{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.declareMain(p, f.ID, m.Number)
	case protocol.KindNews:
		var m protocol.News
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.answer(p, f.ID, h.newsSince(p, m.Since))
	case protocol.KindAlgebra:
		var m protocol.Algebra
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		if b, err := h.algebra(p, &m); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.answer(p, f.ID, b)
		}
	case protocol.KindSetPut:
		var m protocol.SetPut
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		m.Put.Val = bytes.Clone(m.Put.Val)
		h.setPut(p, f.ID, &m)
	case protocol.KindSetGet:
		var m protocol.SetGet
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.setGet(p, &f, &m)
	case protocol.KindDefine:
		m := protocol.Members{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		if set, err := h.define(m.Members); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.give(p, set.Number)
			h.answer(p, f.ID, &protocol.SetBody{S: set})
		}
	case protocol.KindPut:
		var m protocol.Put
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.put(p, f.ID, m.Key, bytes.Clone(m.Val))
	case protocol.KindDelete:
		m := protocol.Text{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.remove(p, f.ID, m.Text)
	case protocol.KindGet:
		var m protocol.Get
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.get(p, &f, m.Key, m.Wait)
	case protocol.KindFence:
		m := protocol.Members{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.enterFence(p, &f, m.Members)
	case protocol.KindSpawn:
		var m protocol.Spawn
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.spawn(p, &f, &m)
	case protocol.KindPort:
		var m protocol.Port
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.portFrame(p, f.ID, &m)
	case protocol.KindMeet:
		var m protocol.Meet
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.meet(p, &f, &m)
	case protocol.KindAbroad:
		m := protocol.Abroad{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.abroad(p, f.ID, m.Job)
	case protocol.KindSignal:
		var m protocol.Signal
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.signal(p, f.ID, &m)
	case protocol.KindEnd:
		m := protocol.Proc{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.end(p, &f, m.Proc)
	case protocol.KindAttach:
		var m protocol.Attach
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.attach(p, &f, &m)
	case protocol.KindKin:
		if err := protocol.Decode(&protocol.Empty{Kind: f.Kind}, f.Body); err != nil {
			return err
		}
		return h.kin(p, &f)
	case protocol.KindService:
		var m protocol.Service
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.service(p, &f, &m)
	case protocol.KindHappen:
		var m protocol.Happen
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.happen(p, &f, &m)
	case protocol.KindSubmit:
		var m protocol.Submit
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		m.COL = bytes.Clone(m.COL)
		_, body := h.submit(p, &m)
		h.answer(p, f.ID, body)
	case protocol.KindAwait:
		var m protocol.Await
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.await(p, &f, m.Op, m.Until)
	case protocol.KindWithdraw:
		m := protocol.Op{Kind: f.Kind}
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.withdraw(p, &f, m.Op)
	case protocol.KindUpdate:
		var m protocol.Update
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.update(p, f.ID, &m)
	case protocol.KindProvide:
		var m protocol.Provide
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.provide(p, f.ID, &m)
	case protocol.KindFollow:
		var m protocol.Follow
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.follow(p, f.ID, &m)
	case protocol.KindHanded:
		var m protocol.Handed
		if err := protocol.Decode(&m, f.Body); err != nil {
			return err
		}
		h.handed(p, f.ID, &m)
	}
	return nil
}

// known checks that every member is or was a process of this job.
func (h *Head) known(m wire.Members) error {
	if job := h.stranger(m); job != 0 {
		return protocol.Refused("the group has processes of job %016x: this call is for processes of one job", uint64(job))
	}
	for _, r := range m.Ranges() {
		if lo, hi := r.Span(); lo == 0 || hi > h.lastProc {
			return protocol.NotFound("%d processes from %v", r.Count, r.First)
		}
	}
	return nil
}

// stranger is a job other than this one of which m has processes; 0: there is none.
func (h *Head) stranger(m wire.Members) wire.JobID {
	for _, r := range m.Ranges() {
		if r.First.Job != h.cfg.Job {
			return r.First.Job
		}
	}
	return 0
}

func (h *Head) contact(p *proc, f *protocol.Frame, target wire.ProcID) error {
	id := f.ID
	t := h.proc(target)
	if t == nil {
		if h.past(target) {
			h.refuse(p, id, &protocol.GoneError{Proc: target, How: howPast})
		} else {
			h.refuse(p, id, protocol.NotFound("process %v", target))
		}
		return nil
	}
	w := &wait{proc: p, id: id, target: t}
	if err := h.park(w, f); err != nil {
		return err
	}
	if t.awaited == nil {
		t.awaited = map[*wait]struct{}{}
	}
	t.awaited[w] = struct{}{}
	h.answerContact(w)
	if h.ending != "" && p.reqs[id] == w {
		h.unparkWith(w, protocol.Ending(h.ending))
	}
	return nil
}

func (h *Head) answerContacts(ws map[*wait]struct{}) {
	for w := range ws {
		h.answerContact(w)
	}
}

// answerContact answers a parked Contact if everything is known, or if it
// never will be.
func (h *Head) answerContact(w *wait) {
	p, t := w.proc, w.target
	if t.via != nil {
		h.answerStranger(w)
		return
	}
	if t.state == protocol.Finalized || t.state == protocol.Exited {
		h.unparkWith(w, &protocol.GoneError{Proc: t.id, How: t.how})
		return
	}
	if t.state != protocol.Joined || !t.announced || t.pid == 0 || p.pid == 0 {
		return
	}
	p.watching.Add(t.id.Serial, t.id.Serial)
	// It may begin a connection and end in the midst of that.
	t.watching.Add(p.id.Serial, p.id.Serial)
	h.unpark(w)
	h.order(p, protocol.Order{Kind: protocol.OrderContact, ID: w.id, Contact: &wire.Contact{Proc: t.id, Host: t.host, Addrs: t.addrs}})
}

// watch: p wants to know of ends. It may name processes that never were, as it
// has their names from memory that others write to.
func (h *Head) watch(p *proc, m wire.Members) {
	if p.state != protocol.Joined {
		return
	}
	none := 0
	var first, last uint32 // those that live, in a row; 0: none yet
	for _, id := range m.All() {
		switch q := h.proc(id); {
		case q != nil && q.via != nil:
			h.watchStranger(p, h.strangers[id])
		case q != nil && q.state != protocol.Exited && q.state != protocol.Finalized:
			if n := id.Serial; last == 0 || n != last+1 {
				if last != 0 {
					p.watching.Add(first, last)
				}
				first = n
			}
			last = id.Serial
		case q != nil:
			h.sendEvent(p, *q.end())
		case h.past(id):
			h.sendEvent(p, protocol.Event{Kind: protocol.EvDied, Proc: id, Text: howPast})
		default:
			if none++; none <= MaxNone {
				h.sendEvent(p, protocol.Event{Kind: protocol.EvNone, Proc: id})
			}
		}
		if none > MaxNone {
			break
		}
	}
	if last != 0 {
		p.watching.Add(first, last)
	}
}

// MaxNone is how many processes that never were are answered for in one watch:
// who reads a name in memory asks for that alone.
const MaxNone = 64
