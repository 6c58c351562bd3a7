// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"fmt"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// frame handles one frame of a process that has said hello. The body is only
// borrowed. An error means that the process broke the protocol.
func (h *Head) frame(p *proc, f control.Frame) error {
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

func (h *Head) oneWay(p *proc, f control.Frame) error {
	switch f.Kind {
	case control.KindFinalize:
		return h.finalizes(p, f)
	case control.KindIdle, control.KindBusy:
		if err := control.Decode(&control.Empty{Kind: f.Kind}, f.Body); err != nil {
			return err
		}
		if p.state == control.Joined {
			p.idle = f.Kind == control.KindIdle
		}
	case control.KindAnnounce:
		var m control.Announce
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		p.announced, p.addrs = true, m.Addrs
		h.answerContacts(p.awaited)
	case control.KindWatch:
		m := control.Members{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.watch(p, m.Members)
	case control.KindCut:
		var m control.Cut
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		if q := h.proc(m.Proc); q != nil && q.via != nil {
			h.sayAbroad(p, q, control.NeighborCut, 0, m.Text)
		} else if q != nil && q != p && p.state == control.Joined {
			h.sendEvent(q, control.Event{Kind: control.EvCut, Proc: p.id, Text: m.Text})
		}
	case control.KindPing, control.KindPong:
		m := control.Ping{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.ping(p, h.proc(m.Proc), f.Kind, m.ID)
	case control.KindReachable:
		m := control.Abroad{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.reached(p, m.Job)
	case control.KindRelease:
		var m control.Release
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.release(p, m.Number, m.Had)
	case control.KindUnfollow, control.KindForsake:
		m := control.Set{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		switch {
		case f.Kind == control.KindUnfollow:
			h.unfollow(p, m.Number)
		case p.state == control.Joined:
			h.forsake(p, m.Number)
		}
	case control.KindUndecided:
		var m control.Undecided
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.undecided(p, &m)
	case control.KindForget, control.KindReleased, control.KindReadied, control.KindProgress, control.KindVoted, control.KindCompleted:
		m := control.Op{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.opOf(p, f.Kind, m.Op)
	case control.KindGiveBack:
		var m control.GiveBack
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.giveBack(p, m.Members)
	case control.KindStacks:
		var m control.Stacks
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.reported(p, &m)
	case control.KindCancel:
		var m control.Cancel
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		if w := p.reqs[m.ID]; w != nil {
			h.cancel(w)
		}
	}
	return nil
}

// finalizes is the frame by which p leaves in order.
func (h *Head) finalizes(p *proc, f control.Frame) error {
	if err := control.Decode(&control.Empty{Kind: f.Kind}, f.Body); err != nil {
		return err
	}
	h.finalize(p)
	return nil
}

func (h *Head) request(p *proc, f control.Frame) error {
	switch f.Kind {
	case control.KindAbort:
		var m control.Abort
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		if abort := h.cfg.Aborted; abort != nil {
			by := p.id
			h.out = append(h.out, Effect{Call: func() { abort(by, m.Code, m.Text) }})
		}
		h.answer(p, f.ID, nil)
		return nil
	case control.KindFinalize:
		if err := h.finalizes(p, f); err != nil {
			return err
		}
		h.answer(p, f.ID, nil)
		return nil
	}
	if p.state != control.Joined {
		h.refuse(p, f.ID, control.NotIn(p.id, p.state))
		return nil
	}
	switch f.Kind {
	case control.KindContact:
		m := control.Proc{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.contact(p, &f, m.Proc)
	case control.KindLookup:
		m := control.Text{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		if set, err := h.lookup(p, m.Text); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.give(p, set.Number)
			h.answer(p, f.ID, h.describe(p, set))
		}
	case control.KindDescribe:
		m := control.Set{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		if _, err := h.living(m.Number); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.answer(p, f.ID, h.describe(p, h.set(m.Number)))
		}
	case control.KindMain:
		m := control.Set{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.declareMain(p, f.ID, m.Number)
	case control.KindNews:
		var m control.News
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.answer(p, f.ID, h.newsSince(p, m.Since))
	case control.KindAlgebra:
		var m control.Algebra
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		if b, err := h.algebra(p, &m); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.answer(p, f.ID, b)
		}
	case control.KindSetPut:
		var m control.SetPut
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		m.Put.Val = bytes.Clone(m.Put.Val)
		h.setPut(p, f.ID, &m)
	case control.KindSetGet:
		var m control.SetGet
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.setGet(p, &f, &m)
	case control.KindDefine:
		m := control.Members{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		if set, err := h.define(m.Members); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.give(p, set.Number)
			h.answer(p, f.ID, &control.SetBody{S: set})
		}
	case control.KindPut:
		var m control.Put
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.put(p, f.ID, m.Key, bytes.Clone(m.Val))
	case control.KindDelete:
		m := control.Text{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.remove(p, f.ID, m.Text)
	case control.KindGet:
		var m control.Get
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.get(p, &f, m.Key, m.Wait)
	case control.KindFence:
		m := control.Members{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.enterFence(p, &f, m.Members)
	case control.KindSpawn:
		var m control.Spawn
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.spawn(p, &f, &m)
	case control.KindPort:
		var m control.Port
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.portFrame(p, f.ID, &m)
	case control.KindMeet:
		var m control.Meet
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.meet(p, &f, &m)
	case control.KindAbroad:
		m := control.Abroad{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.abroad(p, f.ID, m.Job)
	case control.KindSignal:
		var m control.Signal
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.signal(p, f.ID, &m)
	case control.KindEnd:
		m := control.Proc{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.end(p, &f, m.Proc)
	case control.KindAttach:
		var m control.Attach
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.attach(p, &f, &m)
	case control.KindKin:
		if err := control.Decode(&control.Empty{Kind: f.Kind}, f.Body); err != nil {
			return err
		}
		return h.kin(p, &f)
	case control.KindService:
		var m control.Service
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.service(p, &f, &m)
	case control.KindHappen:
		var m control.Happen
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.happen(p, &f, &m)
	case control.KindSubmit:
		var m control.Submit
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		m.COL = bytes.Clone(m.COL)
		_, body := h.submit(p, &m)
		h.answer(p, f.ID, body)
	case control.KindAwait:
		var m control.Await
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.await(p, &f, m.Op, m.Until)
	case control.KindWithdraw:
		m := control.Op{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		return h.withdraw(p, &f, m.Op)
	case control.KindUpdate:
		var m control.Update
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.update(p, f.ID, &m)
	case control.KindProvide:
		var m control.Provide
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.provide(p, f.ID, &m)
	case control.KindFollow:
		var m control.Follow
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.follow(p, f.ID, &m)
	case control.KindHanded:
		var m control.Handed
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		h.handed(p, f.ID, &m)
	}
	return nil
}

// known checks that every member is or was a process of this job.
func (h *Head) known(m wire.Members) error {
	if job := h.stranger(m); job != 0 {
		return control.Refused("the group has processes of job %016x: this call is for processes of one job", uint64(job))
	}
	for _, r := range m.Ranges() {
		if lo, hi := r.Span(); lo == 0 || hi > h.lastProc {
			return control.NotFound("%d processes from %v", r.Count, r.First)
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

func (h *Head) contact(p *proc, f *control.Frame, target wire.ProcID) error {
	id := f.ID
	t := h.proc(target)
	if t == nil {
		if h.past(target) {
			h.refuse(p, id, &control.GoneError{Proc: target, How: howPast})
		} else {
			h.refuse(p, id, control.NotFound("process %v", target))
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
		h.unparkWith(w, control.Ending(h.ending))
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
	if t.state == control.Finalized || t.state == control.Exited {
		h.unparkWith(w, &control.GoneError{Proc: t.id, How: t.how})
		return
	}
	if t.state != control.Joined || !t.announced || t.pid == 0 || p.pid == 0 {
		return
	}
	p.watching.Add(t.id.Serial, t.id.Serial)
	// It may begin a connection and end in the midst of that.
	t.watching.Add(p.id.Serial, p.id.Serial)
	h.unpark(w)
	h.order(p, control.Order{Kind: control.OrderContact, ID: w.id, Contact: &wire.Contact{Proc: t.id, Host: t.host, Addrs: t.addrs}})
}

// watch: p wants to know of ends. It may name processes that never were, as it
// has their names from memory that others write to.
func (h *Head) watch(p *proc, m wire.Members) {
	if p.state != control.Joined {
		return
	}
	none := 0
	var first, last uint32 // those that live, in a row; 0: none yet
	for _, id := range m.All() {
		switch q := h.proc(id); {
		case q != nil && q.via != nil:
			h.watchStranger(p, h.strangers[id])
		case q != nil && q.state != control.Exited && q.state != control.Finalized:
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
			h.sendEvent(p, control.Event{Kind: control.EvDied, Proc: id, Text: howPast})
		default:
			if none++; none <= MaxNone {
				h.sendEvent(p, control.Event{Kind: control.EvNone, Proc: id})
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
