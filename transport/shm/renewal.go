// SPDX-License-Identifier: Apache-2.0

package shm

// Sequence numbers have 32 bits and wrap. A slot keeps its old word while messages use the
// duplex line, and a half of the line keeps its old word while messages use slots. After
// 1<<31 messages such a word would seem to lie ahead; after 1<<32 it would be taken for the
// next message. So a sender renews the words: after renewEvery positions it does not use
// the line until each slot was written once more. Then it writes a recently read number
// into its half.
//
// refresh starts and ends a renewal. Every sender calls it in each lap of the slots, so put
// has no work. No word is older than renewEvery positions and some laps.

// renewEvery is the number of positions between two renewals. It is far below 1<<31, and so
// large that one lap of messages without the line does not count.
const renewEvery = 1 << 20

// renewal is the state of a sender's renewals.
type renewal struct {
	at   uint32 // the position at which the last one began
	half *half  // this side's half of the duplex line, while a renewal is under way
}

// renew begins a renewal that is due, or ends the one under way if it is complete.
func (o *outRing) renew() {
	n := &o.renewal
	if n.half == nil {
		if o.half == nil { // each lap writes all slots
			n.at = o.pos
			return
		}
		n.half, o.half = o.half, nil
		n.at = o.pos - renewEvery // it stays due
		return
	}
	began := n.at + renewEvery
	if o.pos-began < uint32(len(o.slots)) || int32(o.done-began) < 0 {
		return
	}
	// The peer has read all messages that used the line: they came before began.
	n.half.word.Store(uint64(began) << 32)
	o.half, n.half, n.at = n.half, nil, began
}
