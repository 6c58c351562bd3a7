// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/transport"
)

// arrive takes a message from a transport.
func (e *Engine) arrive(l *link, ev *transport.Event) {
	p := l.peer(ev.Slot)
	env, ok := open(&ev.Header)
	if p == nil || !ok || p.state >= peerLost {
		e.protocol(p, fmt.Errorf("%w: bad message header %x", transport.ErrProtocol, ev.Header))
		return
	}
	switch env.kind {
	case kindEager:
		e.arriveEager(p, &env, ev.Payload)
	case kindRTS:
		e.arriveRTS(p, &env, ev.Payload)
	case kindAck, kindRefuse:
		if err := e.answer(p, env); err != nil {
			e.protocol(p, err)
		}
	case kindCancelOK, kindCancelNo:
		if err := e.recallAnswered(p, env); err != nil {
			e.protocol(p, err)
		}
	case kindPull:
		if err := e.pulled(p, &env, ev.Payload); err != nil {
			e.protocol(p, err)
		}
	case kindPiece:
		if err := e.arrivePiece(p, &env, ev.Payload); err != nil {
			e.protocol(p, err)
		}
	case kindFrame:
		if err := e.arriveFrame(p, &env, ev.Payload); err != nil {
			e.protocol(p, err)
		}
	case kindCancel:
		e.cancelAsked(p, env)
	case kindCredit:
		e.credited(p, &env)
	case kindRevoke:
		e.revokeArrived(p, &env)
	case kindCollFail, kindAbsent:
		e.collFailArrived(p, &env)
	}
}

// progress polls every transport once and handles the events. The caller holds the lock. It
// returns the number of events and continuations.
func (e *Engine) progress() int { return e.poll(false) }

// poll is progress. If it is called in a spin, it skips costly transports in most turns.
func (e *Engine) poll(spin bool) int {
	total := 0
	e.prog.Turns++
	for i, l := range e.links {
		if i == 0 && e.loop.idle() || spin && e.prog.Turns%l.every != 0 && len(l.slots) > 0 {
			continue
		}
		n := l.Poll(e.events[:])
		for j := range n {
			e.handle(l, &e.events[j])
		}
		total += n
	}
	if len(e.blocked) > 0 {
		total += e.pumpAll()
	}
	if e.prog.Hooked() {
		total += e.prog.Step()
	}
	for e.colls.ready != nil {
		e.runReady()
		total++
	}
	return total
}

func (e *Engine) handle(l *link, ev *transport.Event) {
	switch ev.Kind {
	case transport.EvRecv:
		e.arrive(l, ev)
	case transport.EvSent:
		if r := e.pool.byToken(ev.Token); r != nil {
			e.sendLeft(r, pendLeave)
		}
	case transport.EvBulk:
		if r := e.pool.byToken(ev.Token); r != nil {
			e.bulkDone(r, ev.Bytes, ev.Err)
		}
	case transport.EvLocal, transport.EvRemote:
		if e.remote != nil {
			e.remote.Posted(ev.Token, ev.Kind == transport.EvRemote, ev.Err)
		}
	case transport.EvWritable:
		if p := l.peer(ev.Slot); p != nil {
			p.full = false
			p.stalls()
			e.pump(p)
		}
	case transport.EvUp:
		e.peerUp(l, ev.Slot, ev.Proc)
	case transport.EvDown:
		if p := l.peer(ev.Slot); p == nil {
		} else if p.state >= peerLost || p.link != l || p.slot != ev.Slot {
			// a second contact, beside or after the one in use
			l.setPeer(ev.Slot, nil)
			l.Release(ev.Slot)
			if p.other == l && p.otherSlot == ev.Slot {
				p.other = nil
				if p.state == peerEnding {
					e.linkDown(p, ev.Err)
				} else if p.dying && p.link != nil {
					p.link.Fail(p.slot)
				}
			}
		} else {
			e.linkDown(p, ev.Err)
		}
	}
}

// takeOwn handles what this process has sent to itself. No other goroutine handles events
// of the loop meanwhile.
func (e *Engine) takeOwn() {
	p := e.peers[e.cfg.Self]
	if p == nil {
		return
	}
	var ev [4]transport.Event // Engine.events is in use if a transport reported a failure
	for e.pump(p); e.loop.head < len(e.loop.queue); e.pump(p) {
		for i := range e.loop.Poll(ev[:]) {
			e.handle(p.link, &ev[i])
		}
	}
}
