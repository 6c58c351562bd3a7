// SPDX-License-Identifier: Apache-2.0

package shm

// Sequence numbers have 32 bits and come around. A slot that the duplex line passes over keeps
// its old word, and so does a half of the line while messages go by slots. After 1<<31 messages
// such a word would seem to lie ahead, after 1<<32 it would be taken for the next message. So a
// sender renews them: after renewEvery positions it leaves the line alone until each slot was
// written once more, and then writes a number into its half that was read lately.
//
// refresh starts and ends a renewal, since no sender gets past the slots of one lap without it:
// put has nothing to look at. No word is older than renewEvery positions and some laps.

// renewEvery is how many positions lie between two renewals: few in comparison with 1<<31, and
// so many that the messages of one lap, which miss the line, do not count.
const renewEvery = 1 << 20

// renewal is what a sender knows of the renewals of its words.
type renewal struct {
	at   uint32 // where the last one began
	half *half  // our half of the duplex line, while one is under way
}

// renew begins a renewal, which is due, or ends the one that is under way if it is complete.
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
	// The peer has read all that went by the line, which was in front of began.
	n.half.word.Store(uint64(began) << 32)
	o.half, n.half, n.at = n.half, nil, began
}
