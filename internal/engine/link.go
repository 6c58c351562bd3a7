// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"gompi/internal/base/credit"
	"gompi/transport"
)

// copiedMax is the largest payload that every transport copies at once: it answers Sent,
// Full or Broken, never Queued.
const copiedMax = 16 << 10

// link is one transport, with the engine's peers by slot.
type link struct {
	transport.Transport
	caps  transport.Caps
	boxes transport.FastBoxes // nil if it has no fast boxes
	place transport.Reserver  // nil if strided memory must be packed elsewhere
	eager int                 // largest eager payload
	piece int64               // largest piece of a stream
	short int64               // largest payload that goes without a request
	every uint64              // a spin polls the transport once in so many turns
	slots []*Peer             // by slot
}

// newLink wraps a transport. base is the initial credit of a peer.
func newLink(t transport.Transport, eagerMax int, base int64) *link {
	l := &link{Transport: t, caps: t.Caps()}
	l.every = uint64(max(l.caps.SpinEvery, 1))
	l.boxes, _ = t.(transport.FastBoxes)
	l.place, _ = t.(transport.Reserver)
	l.eager = min(l.caps.EagerBest, l.caps.EagerMax)
	if eagerMax > 0 {
		l.eager = min(eagerMax, l.caps.EagerMax)
	} else if eagerMax < 0 {
		l.eager = -1
	}
	// An eager message must be affordable with three quarters of the credit used. Otherwise
	// it could wait for ever.
	l.eager = min(l.eager, int(base/4)-credit.UnitBytes)
	l.short = int64(min(l.eager, copiedMax))
	l.piece = int64(min(l.caps.EagerMax, copiedMax))
	return l
}

func (l *link) peer(s transport.Slot) *Peer {
	if int(s) < len(l.slots) {
		return l.slots[s]
	}
	return nil
}

func (l *link) setPeer(s transport.Slot, p *Peer) {
	for int(s) >= len(l.slots) {
		l.slots = append(l.slots, nil)
	}
	l.slots[s] = p
}

// tellOversubscribed tells the transports whether the policy counts processors as
// oversubscribed.
func (nt *network) tellOversubscribed() {
	for _, l := range nt.links {
		if c, ok := l.Transport.(transport.Oversubscriber); ok {
			c.Oversubscribed(nt.process.prog.Policy.PerCPU > 1)
		}
	}
}

// checkEvery is how often transports look for damaged messages, for which a receiver might
// wait for ever.
const checkEvery = 5 * time.Second

// startChecks starts these checks if a transport needs them.
func (nt *network) startChecks() {
	for _, l := range nt.links {
		if _, ok := l.Transport.(transport.Checker); ok {
			nt.checks = time.AfterFunc(checkEvery, nt.checkLinks)
			return
		}
	}
}

// checkLinks is called every checkEvery, until the engine is closed.
func (nt *network) checkLinks() {
	nt.process.mu.Lock()
	defer nt.process.mu.Unlock()
	if nt.process.closed {
		return
	}
	for _, l := range nt.links {
		if c, ok := l.Transport.(transport.Checker); ok {
			c.Check()
		}
	}
	nt.checks.Reset(checkEvery)
	nt.process.prog.Wake() // the check may have found something
}

// sharer returns the transport with shared memory of the host, or nil.
func (nt *network) sharer() transport.Sharer {
	if l := nt.sharingLink(); l != nil {
		return l.Transport.(transport.Sharer)
	}
	return nil
}

// sharingLink returns the link whose transport is a Sharer, or nil.
func (nt *network) sharingLink() *link {
	for _, l := range nt.links[1:] {
		if _, ok := l.Transport.(transport.Sharer); ok {
			return l
		}
	}
	return nil
}

// singleCopy returns the transport by which processes of a host access each other's memory,
// or nil.
func (nt *network) singleCopy() transport.SingleCopy {
	for _, l := range nt.links[1:] {
		if x, ok := l.Transport.(transport.SingleCopy); ok {
			return x
		}
	}
	return nil
}

// far reports whether a peer shares no memory with this process.
func (nt *network) far() bool {
	for _, l := range nt.links[1:] {
		if !l.caps.Local && len(l.slots) > 0 {
			return true
		}
	}
	return false
}
