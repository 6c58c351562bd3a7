// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/base/wire"

// Messages of an intercommunicator go to its remote group, except for steps of collectives
// inside the local group. Those have a traffic class of their own, TrafficCollLocal. So the
// class says to which group a rank on the wire belongs: both groups count from 0.

// member is the index of a process in both groups of a communicator: its rank in Targets,
// or the complement of its rank in the local group of an intercommunicator.
type member int32

// memberOf returns the member of the rank that a message or receive of a class names.
func memberOf(pl wire.TrafficClass, rank int32) member {
	if pl == wire.TrafficCollLocal {
		return ^member(rank)
	}
	return member(rank)
}

func (s member) local() bool { return s < 0 }

func (s member) rank() int32 {
	if s.local() {
		return int32(^s)
	}
	return int32(s)
}
