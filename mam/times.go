// SPDX-License-Identifier: Apache-2.0

package mam

import "time"

// Times are those of a change, on this process.
type Times struct {
	NS, ND int
	// Method and Strategy are those that were used, after what was repaired of the
	// configuration; of Auto what it has chosen.
	Method   Method
	Strategy Strategy
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
	// Early are those of Bytes that are of variable data and came while the sources computed,
	// Again those that came once more at the commit, as they had been written meanwhile. Hot
	// names data of which that was more than half: without its reading in the background,
	// or as Marked data of which only a part is written, the change would take less.
	Early, Again int64
	Hot          string
	// Spans are when it did what, in the order in which that ended; a Touching lies within
	// one of the others or before all of them.
	Spans []Span
}

// Phase is what a process does with the data of a change.
type Phase uint8

// The phases.
const (
	Touching   Phase = iota // new memory: its allocation and first touch
	Background              // data moves while sources compute
	AtCommit                // data moves in the Checkpoint that is handed the change, or in Init
)

// String gives the phase in lower case.
func (p Phase) String() string { return [...]string{"touching", "background", "at commit", "?"}[p&3] }

// Span is a phase from when until when, by this process's clock.
type Span struct {
	Phase      Phase
	Start, End time.Time
}

// spent notes a phase that ends now, and says how long it was.
func (t *Times) spent(p Phase, start time.Time) time.Duration {
	end := time.Now()
	t.Spans = append(t.Spans, Span{p, start, end})
	return end.Sub(start)
}
