// SPDX-License-Identifier: Apache-2.0

// Package faulty wraps a transport and makes it awkward in every way that the
// contract allows: events held back for some Polls and so reordered between
// peers, Full for no reason, few events a Poll, peers that die, shared memory
// that is not to be had, accesses to the memory of others that fail half-way. All
// of it follows from a seed and from the calls made, so a failing test can be
// repeated as far as the transport below repeats itself.
//
// The wrapper has the optional capabilities of the transport below: its fast boxes
// hold messages back, places in the peer's memory are refused as sends are. What
// processes write into memory that they share passes no transport, and is left
// alone.
//
// The engine's tests run over it, and it passes transporttest itself. The
// order of events of one slot is kept. One sentence of the contract it
// stretches: Poll may return less than len(ev) although it holds more; but
// then Arm says so.
package faulty
