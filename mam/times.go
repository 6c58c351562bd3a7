// SPDX-License-Identifier: Apache-2.0

package mam

import "time"

// Times are those of a change, on this process.
type Times struct {
	NS, ND int
	// RMS is from the request until the change was granted, Spawn from then until all
	// newcomers were ready, as the head saw it: on the rank 0 that has asked for it by
	// SetTarget or Targets, else 0.
	RMS, Spawn time.Duration
	Async      time.Duration // constant data, while the sources computed
	User       time.Duration // the user function, all its calls
	Sync       time.Duration // data that moved at the commit, with waiting for others
	Touch      time.Duration // new memory: its allocation and first touch; a part of the others
	Commit     time.Duration // from the vote to the decision
	Total      time.Duration // from when this process knew of the change until it was committed
	Bytes      int64         // that came to this process from others
}
