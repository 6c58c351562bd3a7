// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/hex"
	"fmt"

	"gompi/internal/control/protocol"
)

// A spare is a program that runs before anybody needs it, in a place that is not
// bound yet: when it has shown its token it waits for the head to bind the place.

// spare is the place of one.
type spare struct {
	reservation uint32
	taken       chan struct{} // closed when the place is bound, or nobody will
}

// SpareToken is what the spare in the first place of a reservation shows; empty if
// there is no such reservation.
func (a *Agent) SpareToken(reservation uint32) string {
	places := a.unbound[reservation]
	if len(places) == 0 {
		return ""
	}
	token := places[0].token
	if a.spares[token] == nil {
		a.spares[token] = &spare{reservation, make(chan struct{})}
	}
	return hex.EncodeToString(token[:])
}

// waitingError is the answer to a Hello that may come again when the channel is
// closed.
type waitingError struct{ taken <-chan struct{} }

func (*waitingError) Error() string { return "a spare is not needed yet" }

// spareHello is Hello of a spare; nil: it is none, or none any more.
func (a *Agent) spareHello(token [protocol.TokenBytes]byte) error {
	switch w := a.spares[token]; {
	case w == nil:
		return nil
	case a.ending != "":
		return protocol.Ending(a.ending)
	default:
		return &waitingError{w.taken}
	}
}

// unspare: the places of a reservation are bound, or given up.
func (a *Agent) unspare(reservation uint32) {
	for _, s := range a.unbound[reservation] {
		if w := a.spares[s.token]; w != nil {
			close(w.taken)
			delete(a.spares, s.token)
		}
	}
}

// endSpares: the job ends.
func (a *Agent) endSpares() {
	for token, w := range a.spares {
		close(w.taken)
		a.spares[token] = &spare{w.reservation, make(chan struct{})}
	}
}

// ownSpare makes the segment that a spare was given its own.
func (a *Agent) ownSpare(s *Proc) {
	if err := s.files.own(a.id(s)); err != nil {
		panic(fmt.Sprintf("gompi: BUG: %v", err))
	}
}
