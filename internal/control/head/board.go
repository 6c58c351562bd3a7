// SPDX-License-Identifier: Apache-2.0

package head

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// giveBoard has the members of a set given the memory for the shared collectives of its
// first communicator, on each of their hosts. All of them are bound.
func (h *Head) giveBoard(number uint32) {
	t := h.sets[number]
	if !h.cfg.Boards || t == nil || t.board {
		return
	}
	t.board = true
	h.onHosts(number, func(host uint32) protocol.Command {
		return protocol.Command{Kind: protocol.CmdPreallocate, ID: number, Members: h.membersOn(number, host)}
	})
}

// giveJoining is giveBoard of the worlds of newcomers that have their places, and of
// what they come for.
func (h *Head) giveJoining(l *Launch) {
	if o := h.ops[l.Op]; o != nil {
		for i := range o.body.Outputs {
			for _, s := range o.body.Outputs[i].Joining {
				h.giveBoard(s)
			}
		}
		h.giveResults(o)
	}
}

// giveResults is giveBoard of what an operation makes of its inputs.
func (h *Head) giveResults(o *op) {
	for i := range o.body.Outputs {
		h.giveBoard(o.body.Outputs[i].Result)
	}
}

// ungive: a set is gone, so nobody begins to use its memory any more.
func (h *Head) ungive(number uint32) {
	if h.sets[number].board {
		h.onHosts(number, func(uint32) protocol.Command { return protocol.Command{Kind: protocol.CmdRetract, ID: number} })
	}
}

// onHosts orders something of the hosts of a set.
func (h *Head) onHosts(number uint32, order func(host uint32) protocol.Command) {
	done := map[uint32]struct{}{}
	for _, at := range h.sets[number].hosts {
		if _, ok := done[at.Host]; ok || at.Host == wire.NoHost || h.hosts[at.Host].lost {
			continue
		}
		done[at.Host] = struct{}{}
		h.out = append(h.out, Effect{Host: at.Host, Order: order(at.Host)})
	}
}
