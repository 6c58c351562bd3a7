// SPDX-License-Identifier: Apache-2.0

package core

import (
	"hash/maphash"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/engine"
)

// With GOMPI_CHECK=1 a buffer must not be written by the program between the start of
// an operation and its Wait. What is sent is hashed at both. What is received goes into
// memory of the library's, and from there into the program's at Wait, if that holds
// what it held at the start: writes are found whether they come before or after the
// message.

// seed is that of all hashes.
var seed = maphash.MakeSeed() //archtest:global a constant of the process

// hashOfBuf is the hash of what a buffer holds.
func hashOfBuf(b buffer.Buf) uint64 {
	if mem, ok := b.Memory(); ok {
		return maphash.Bytes(seed, mem)
	}
	mem := make([]byte, b.Bytes())
	b.Pack(mem, 0)
	return maphash.Bytes(seed, mem)
}

// landing is where a message goes until Wait.
type landing struct {
	user, own buffer.Buf
	held      uint64 // hash of what the program's memory held
}

// Land has an operation receive into memory of the library's in place of b: returned is
// what it receives into. Buffers of derived types of several basic ones stay.
func (u *Use) Land(b buffer.Buf) buffer.Buf {
	if b.Bytes() == 0 {
		return b
	}
	own, ok := b.AllocLike()
	if !ok {
		return b
	}
	b.Pack(own.Flat(), 0) // what no message comes for stays as it is
	u.landed = append(u.landed, landing{b, own, hashOfBuf(b)})
	return own
}

// LandColl is Land of a collective call whose result is not where its input is.
func (u *Use) LandColl(a *engine.CollArgs) {
	if a.InBlocks == nil && len(u.writes) == 1 && !a.In.Overlaps(a.Out) && !a.Out.Strided() {
		a.Out = u.Land(a.Out)
	}
}

// Unwatch lets the program write the buffers.
func (u *Use) Unwatch() { u.held, u.landed = nil, nil }

// hash notes what the buffers to be read hold, but for those that are written, too.
func (u *Use) hash() {
	u.site = engine.Caller()
	u.held = make([]uint64, len(u.reads))
	for i, b := range u.reads {
		u.held[i] = hashOfBuf(b)
	}
}

// inspect says which buffer the program has written, and gives the program what has
// come.
func (u *Use) inspect() (f *fault.Fault) {
	for i := range u.landed {
		l := &u.landed[i]
		if hashOfBuf(l.user) != l.held {
			f = u.written("receive", l.user)
		}
		l.user.Unpack(0, l.own.Flat())
	}
	for i, h := range u.held {
		if hashOfBuf(u.reads[i]) != h && !overlap(u.reads[i:i+1], u.writes) {
			f = u.written("send", u.reads[i])
		}
	}
	return f
}

func (u *Use) written(what string, b buffer.Buf) *fault.Fault {
	f := wrong(fault.InUse, "the program has written its %s buffer of %d bytes before Wait or Test: %v, started at %s", what, b.Bytes(), u, u.site)
	f.Peer = int32(u.peer)
	if f.Peer < 0 {
		f.Peer = -1
	}
	return f
}

// watch has the buffers of a use looked at when the request that was started with them
// is waited for.
func (u *Use) watch(h engine.Handle) {
	if len(u.held)+len(u.landed) > 0 && !h.IsNull() {
		u.engine.Inspect(h, u.inspect)
	}
}
