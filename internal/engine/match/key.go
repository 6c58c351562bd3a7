// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"math/bits"

	"gompi/internal/base/wire"
)

// Any as a source or a tag fits every source or tag. Only posted receives and
// probes use it; a message carries neither.
const Any = -1

// MaxSource is the largest rank a Key can hold. Tags may be any int32 >= 0.
const MaxSource = 1<<28 - 2

// Key is what a message is matched by: context, traffic class (plane), source
// and tag. Two keys are equal exactly if all parts are.
//
//	W0   job of the context's creator
//	W1   serial of the creator << 32 | serial of the context
//	W2   plane << 60 | source << 32 | tag
//
// Any has all bits of its field set, so or-ing a mask into W2 widens a key.
type Key struct{ W0, W1, W2 uint64 }

const (
	tagMask    = 1<<32 - 1
	sourceMask = (1<<28 - 1) << 32
	planeShift = 60
)

// The traffic classes fit four bits.
const _ = uint8(15 - wire.NumTraffic)

// NewKey builds a key. It panics if source or tag is out of range: values from another
// process or the user must be checked before.
func NewKey(c wire.ContextID, pl wire.TrafficClass, source, tag int32) Key {
	return Key{
		W0: uint64(c.Creator.Job),
		W1: uint64(c.Creator.Serial)<<32 | uint64(c.Serial),
		W2: uint64(pl) << planeShift,
	}.With(source, tag)
}

// With returns k with another source and tag.
func (k Key) With(source, tag int32) Key {
	if source < Any || source > MaxSource || tag < Any {
		badKey(source, tag)
	}
	k.W2 = k.W2&^(sourceMask|tagMask) | uint64(source)<<32&sourceMask | uint64(uint32(tag))
	return k
}

func badKey(source, tag int32) {
	panic(fmt.Sprintf("gompi: BUG: no match key for source %d, tag %d", source, tag))
}

// Context returns the context id.
func (k Key) Context() wire.ContextID {
	return wire.ContextID{
		Creator: wire.ProcID{Job: wire.JobID(k.W0), Serial: uint32(k.W1 >> 32)},
		Serial:  uint32(k.W1),
	}
}

// In reports whether k belongs to context c, in any traffic class.
func (k Key) In(c wire.ContextID) bool { return k.Context() == c }

// Plane returns the traffic class.
func (k Key) Plane() wire.TrafficClass { return wire.TrafficClass(k.W2 >> planeShift) }

// Source returns the rank, or Any.
func (k Key) Source() int32 {
	if k.W2&sourceMask == sourceMask {
		return Any
	}
	return int32(k.W2 & sourceMask >> 32)
}

// Tag returns the tag, or Any.
func (k Key) Tag() int32 { return int32(uint32(k.W2)) }

// Exact reports whether k can be a message's key: a known traffic class, a source, and a
// tag that is not negative. A key from another process must pass it before Arrive or Keep.
func (k Key) Exact() bool {
	return k.Plane() < wire.TrafficClass(wire.NumTraffic) && k.W2&sourceMask != sourceMask && int32(uint32(k.W2)) >= 0
}

// Fits reports whether a message with the exact key m may be received by k.
func (k Key) Fits(m Key) bool { return k == m.widen(k.class()) }

// String formats k as "creator:serial/plane source->tag", with * for Any.
func (k Key) String() string {
	part := func(v int32) string {
		if v == Any {
			return "*"
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%v plane %d source %s tag %s", k.Context(), k.Plane(), part(k.Source()), part(k.Tag()))
}

// class says which parts of a key are Any.
type class uint8

const (
	exact     class = 0
	anySource class = 1
	anyTag    class = 2
	anyBoth         = anySource | anyTag
	classes         = 4
)

// widening has, for each class, the bits that are forced to Any.
var widening = [classes]uint64{anySource: sourceMask, anyTag: tagMask, anyBoth: sourceMask | tagMask}

func (k Key) widen(c class) Key {
	k.W2 |= widening[c]
	return k
}

func (k Key) class() class {
	var c class
	if k.W2&sourceMask == sourceMask {
		c = anySource
	}
	if k.W2&tagMask == tagMask {
		c |= anyTag
	}
	return c
}

// hash is one wide multiplication. Both halves are needed: the low half alone loses the
// high bits of a tag, and tags often have strides.
func (k Key) hash() uint64 {
	hi, lo := bits.Mul64(k.W2^0x9e3779b97f4a7c15, k.W1^bits.RotateLeft64(k.W0, 23)^0xe7037ed1a0b428db)
	return hi ^ lo
}
