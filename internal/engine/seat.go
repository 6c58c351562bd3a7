// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/base/wire"

// The messages of an intercommunicator go to its remote group, but for steps
// of collectives within the local one, which have a plane of their own:
// PlaneCollLocal. So the plane says which group a rank on the wire belongs to,
// as both count from 0.

// seat is a rank of either group: in Targets, or the complement of one in the
// local group of an intercommunicator.
type seat int32

// seatOf gives the seat of the rank that a message or receive on a plane names.
func seatOf(pl wire.TrafficClass, rank int32) seat {
	if pl == wire.TrafficCollLocal {
		return ^seat(rank)
	}
	return seat(rank)
}

func (s seat) local() bool { return s < 0 }

func (s seat) rank() int32 {
	if s.local() {
		return int32(^s)
	}
	return int32(s)
}
