// SPDX-License-Identifier: Apache-2.0

package mam

import "time"

// Times are the times of one change, on this process.
type Times struct {
	NS, ND int
	// Method and Strategy are those that were used, after repairs of the configuration and the
	// choice of Auto.
	Method   Method
	Strategy Strategy
	// RMS is the time from the request until the change was granted, Spawn from then until all
	// newcomers were ready, as the head saw it. They are known on the rank 0 that has asked for
	// the change by SetTarget or Targets, else 0.
	RMS, Spawn time.Duration
	Async      time.Duration // constant data, while the sources computed
	User       time.Duration // the user function, all its calls
	Sync       time.Duration // data that moved at the commit, with waits for others
	Touch      time.Duration // allocation and first touch of new memory; a part of the others
	Commit     time.Duration // from the vote to the decision
	Total      time.Duration // from when this process learned of the change until the commit
	Bytes      int64         // that came to this process from others
	// Early are the bytes of variable data among Bytes that came while the sources computed.
	// Again are those that came once more at the commit, because they were written meanwhile. Hot
	// names data of which that was more than half: without a pre-copy, or as Marked data if only
	// a part is written, the change would take less time.
	Early, Again int64
	Hot          string
	// Spans are the phases of this process, in the order of their ends. A Touching lies within
	// one of the others or before all of them.
	Spans []Span
}

// Phase is what a process does with the data of a change.
type Phase uint8

// The phases.
const (
	Touching   Phase = iota // new memory: its allocation and first touch
	Background              // data moves while sources compute
	AtCommit                // data moves in the Checkpoint that gets the change, or in Init
)

// String gives the phase in lower case.
func (p Phase) String() string { return [...]string{"touching", "background", "at commit", "?"}[p&3] }

// Span is the time of a phase, by this process's clock.
type Span struct {
	Phase      Phase
	Start, End time.Time
}

// spent notes a phase that ends now, and returns how long it was.
func (t *Times) spent(p Phase, start time.Time) time.Duration {
	end := time.Now()
	t.Spans = append(t.Spans, Span{p, start, end})
	return end.Sub(start)
}
