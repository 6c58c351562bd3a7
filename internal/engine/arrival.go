// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/bytepool"
	"gompi/internal/base/list"
	"gompi/internal/engine/match"
)

// arrival is an unexpected message.
//
// There may be a million of them. Its sender was charged a fixed number of bytes for each;
// TestArrivalsAreSmall checks that an arrival takes no more.
type arrival struct {
	node     match.Arrived[arrival]
	peer     *Peer
	atPeer   list.Link[arrival] // in Peer.announcements
	data     []byte             // payload: the message, or what an RTS carries
	units    int32
	aux      uint32 // this and the next three come from the envelope
	kind     kind
	flags    uint8
	elements elements
}

func (a *arrival) envelope() envelope {
	return envelope{key: a.node.Key, kind: a.kind, flags: a.flags, elements: a.elements, aux: a.aux}
}

// bytes is the length of the message.
func (a *arrival) bytes() int64 {
	if a.kind != kindRTS {
		return int64(len(a.data))
	}
	length, _, _ := openRTS(a.data)
	return length
}

// arrivalPool recycles arrivals and their memory. It keeps no more than what a peer may
// send with its initial credit.
type arrivalPool struct {
	free   []*arrival
	blocks bytepool.Pool
}

const maxArrivals = 1 << 13

func (p *arrivalPool) get(n int) *arrival {
	var a *arrival
	if k := len(p.free); k > 0 {
		a, p.free = p.free[k-1], p.free[:k-1]
	} else {
		a = new(arrival)
	}
	a.data = p.blocks.Get(n)
	return a
}

func (p *arrivalPool) put(a *arrival) {
	a.atPeer.Remove()
	p.blocks.Put(a.data)
	if *a = (arrival{}); len(p.free) < maxArrivals {
		p.free = append(p.free, a)
	}
}
