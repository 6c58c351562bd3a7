// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Frames of synchronisation. Numbers are little-endian, what is not named is 0.
//
//	signal  0 kind, 4 handle, 8 nonce, 16 word (uint32), 24 value
//	lock    0 kind, 1 exclusive (4 or 0), 4 handle, 8 nonce, 16 first word, 20 parties, 24 party (uint32), 32 number
//	unlock  0 kind, 8 number of the lock
//	answer  0 kind, 1 lockAnswer, 4 rank (uint32), 8 number of the lock
//	holder  0 kind, 8 number of the lock: who holds it?
const (
	frameSignal = 16 + iota
	frameLock
	frameUnlock
	frameAnswer
	frameHolder

	signalFrameBytes = 32
	lockFrameBytes   = 40
	unlockFrameBytes = 16
	answerFrameBytes = 16
	holderFrameBytes = 16
)

// frameSync handles the frames of synchronisation.
func (s *Space) frameSync(from wire.ProcID, kind byte, b []byte) error {
	// Values that are checked and then used must be read once.
	var in [lockFrameBytes]byte
	n := copy(in[:], b)
	switch {
	case kind == frameSignal && len(b) == signalFrameBytes:
		return s.serveSignal(in[:n])
	case kind == frameLock && len(b) == lockFrameBytes:
		return s.serveLock(from, in[:n])
	case kind == frameUnlock && len(b) == unlockFrameBytes:
		s.serveUnlock(from, in[:n])
		return nil
	case kind == frameHolder && len(b) == holderFrameBytes:
		s.serveHolder(from, in[:n])
		return nil
	case kind == frameAnswer && len(b) == answerFrameBytes:
		return s.takeAnswer(from, in[:n])
	}
	return fmt.Errorf("%w: frame of kind %d with %d bytes", transport.ErrProtocol, kind, len(b))
}

// SetMembers sets the ranks that share the words of the region's lock. The caller must call
// it before others use the description.
func (r *Region) SetMembers(m wire.Members) {
	r.s.e.Lock()
	defer r.s.e.Unlock()
	r.members = m
	r.parties = lockParties{s: r.s, members: m, owner: r.s.self, locked: true}
}
