// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"

	"gompi/internal/control/protocol"
)

// handler handles one message of a process. The message may keep parts of the frame's body,
// which is valid only until the handler returns. An error means that the process broke the
// protocol.
type handler func(h *Head, p *proc, f *protocol.Frame, m protocol.Message) error

// handlers is the handler of each kind that a process sends to the head.
var handlers = [256]handler{
	protocol.KindContact:      on((*Head).contact),
	protocol.KindAnnounce:     event((*Head).announce),
	protocol.KindWatch:        event((*Head).watch),
	protocol.KindDisconnected: event((*Head).disconnect),
	protocol.KindPing:         event((*Head).ping),
	protocol.KindPong:         event((*Head).ping),
	protocol.KindStacks:       event((*Head).reported),
	protocol.KindIdle:         event((*Head).setIdle),
	protocol.KindBusy:         event((*Head).setIdle),
	protocol.KindAbort:        request((*Head).abort),
	protocol.KindFinalize:     on((*Head).finalizes),
	protocol.KindCancel:       event((*Head).cancelRequest),

	protocol.KindPut:    request((*Head).put),
	protocol.KindGet:    on((*Head).get),
	protocol.KindDelete: request((*Head).remove),
	protocol.KindFence:  on((*Head).enterFence),

	protocol.KindLookup:    query((*Head).lookup),
	protocol.KindDefine:    query((*Head).defineFor),
	protocol.KindRelease:   event((*Head).releaseSet),
	protocol.KindForsake:   event((*Head).forsake),
	protocol.KindDescribe:  query((*Head).describeSet),
	protocol.KindMain:      request((*Head).declareMain),
	protocol.KindNews:      query((*Head).newsSince),
	protocol.KindAlgebra:   query((*Head).algebra),
	protocol.KindSetPut:    request((*Head).setPut),
	protocol.KindSetGet:    on((*Head).setGet),
	protocol.KindNextEvent: on((*Head).happen),

	protocol.KindSubmit:      query((*Head).submitFor),
	protocol.KindAwait:       on((*Head).await),
	protocol.KindWithdraw:    on((*Head).withdraw),
	protocol.KindUpdate:      request((*Head).update),
	protocol.KindForget:      event((*Head).aboutOp),
	protocol.KindSubscribe:   request((*Head).follow),
	protocol.KindUnsubscribe: event((*Head).unfollow),
	protocol.KindGetChange:   request((*Head).handed),
	protocol.KindReleased:    event((*Head).aboutOp),
	protocol.KindReadied:     event((*Head).aboutOp),
	protocol.KindProgress:    event((*Head).aboutOp),
	protocol.KindVoted:       event((*Head).aboutOp),
	protocol.KindCompleted:   event((*Head).aboutOp),
	protocol.KindDecline:     event((*Head).decline),
	protocol.KindUndecided:   event((*Head).undecided),
	protocol.KindProvide:     request((*Head).provide),

	protocol.KindSpawn:      on((*Head).spawn),
	protocol.KindSignal:     request((*Head).signal),
	protocol.KindGiveBack:   event((*Head).giveBackProcs),
	protocol.KindEnd:        on((*Head).end),
	protocol.KindAttach:     on((*Head).attach),
	protocol.KindAttachment: on((*Head).kin),
	protocol.KindPort:       request((*Head).portFrame),
	protocol.KindConnect:    on((*Head).meet),
	protocol.KindService:    on((*Head).service),
	protocol.KindForeignJob: request((*Head).abroad),
	protocol.KindReachable:  event((*Head).reached),
}

// on makes a handler of a method that may answer the request later.
func on[M protocol.Message](do func(*Head, *proc, *protocol.Frame, M) error) handler {
	return func(h *Head, p *proc, f *protocol.Frame, m protocol.Message) error {
		return do(h, p, f, m.(M))
	}
}

// event makes a handler of a method for a message that has no answer.
func event[M protocol.Message](do func(*Head, *proc, M)) handler {
	return func(h *Head, p *proc, _ *protocol.Frame, m protocol.Message) error {
		do(h, p, m.(M))
		return nil
	}
}

// request makes a handler of a method that answers the request with this number.
func request[M protocol.Message](do func(*Head, *proc, uint32, M)) handler {
	return func(h *Head, p *proc, f *protocol.Frame, m protocol.Message) error {
		do(h, p, f.ID, m.(M))
		return nil
	}
}

// query makes a handler of a method that returns the answer, or why the request is refused.
func query[M, B protocol.Message](do func(*Head, *proc, M) (B, error)) handler {
	return func(h *Head, p *proc, f *protocol.Frame, m protocol.Message) error {
		if body, err := do(h, p, m.(M)); err != nil {
			h.refuse(p, f.ID, err)
		} else {
			h.answer(p, f.ID, body)
		}
		return nil
	}
}

// frame handles one frame of a process that has said hello. The body is valid only during the
// call. An error means that the process broke the protocol.
func (h *Head) frame(p *proc, f *protocol.Frame) error {
	if err := f.Check(protocol.Process); err != nil {
		return err
	}
	do := handlers[f.Kind]
	switch {
	case do == nil: // its agent should have handled it
		return f.Kind.Misplaced(protocol.Agent)
	case f.ID == 0:
	case p.reqs[f.ID] != nil:
		return fmt.Errorf("request number %d is in use", f.ID)
	case f.Kind == protocol.KindAbort || f.Kind == protocol.KindFinalize: // at any time
	case p.state != protocol.Joined:
		h.refuse(p, f.ID, protocol.NotIn(p.id, p.state))
		return nil
	}
	m, err := f.Message()
	if err != nil {
		return err
	}
	return do(h, p, f, m)
}

// abort asks the launcher to end the job.
func (h *Head) abort(p *proc, id uint32, m *protocol.Abort) {
	if abort := h.cfg.Aborted; abort != nil {
		by := p.id
		h.out = append(h.out, Effect{Call: func() { abort(by, m.Code, m.Text) }})
	}
	h.answer(p, id, nil)
}

// finalizes takes p out of the job in order, and answers if p asks for that.
func (h *Head) finalizes(p *proc, f *protocol.Frame, _ *protocol.Empty) error {
	if h.finalize(p); f.ID != 0 {
		h.answer(p, f.ID, nil)
	}
	return nil
}

// setIdle notes whether the end of p is in order from now on although it has not finalized.
func (h *Head) setIdle(p *proc, m *protocol.Empty) {
	if p.state == protocol.Joined {
		p.idle = m.Kind == protocol.KindIdle
	}
}

// cancelRequest ends a request of p that waits. The answer may be on its way already.
func (h *Head) cancelRequest(p *proc, m *protocol.Cancel) {
	if w := p.reqs[m.ID]; w != nil {
		h.cancel(w)
	}
}
