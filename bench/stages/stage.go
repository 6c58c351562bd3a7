// SPDX-License-Identifier: Apache-2.0

// Package stages emulates what iterations of an application do: computing, messages,
// collectives and files, in the stages of the synthetic application module of Proteo
// (SAM, University Jaume I), by their published numbers and rules. Package sam makes
// whole applications of them.
package stages

import (
	"errors"
	"fmt"
	"math"
)

// Kind is the kind of a stage. The numbers are the published ones.
type Kind int

// The kinds of stages.
const (
	Pi        Kind = iota // pi by an integral of Granularity rectangles
	Matrix                // a pass over a square matrix of Granularity rows
	Ring                  // a message to the next rank and one from the rank before
	IRing                 // the same, without waiting
	Wait                  // for all stages IRing with its identifier
	Bcast                 // from rank 0
	Allgather             // of blocks that make Bytes together
	Reduce                // to rank 0, the maximum of bytes
	Allreduce             // the same, to all ranks
	Write                 // to a file of the rank's own
	Read                  // from such a file

	kinds
)

// String returns the name of the kind.
func (k Kind) String() string {
	if k < 0 || k >= kinds {
		return fmt.Sprintf("type %d", int(k))
	}
	return [kinds]string{"pi", "matrix", "ring", "iring", "wait", "bcast", "allgather", "reduce", "allreduce", "write", "read"}[k]
}

func (k Kind) computes() bool { return k == Pi || k == Matrix }
func (k Kind) files() bool    { return k == Write || k == Read }

// Stage is one stage of an iteration, with the published fields. An operation of a stage
// with Bytes moves that many. One without moves Granularity bytes, or computes as
// described at its kind, and is repeated to fill Seconds.
type Stage struct {
	Kind Kind
	// Seconds is the time of the stage with a factor of 1; 0: Bytes determine the work.
	// Beside Bytes it counts only if Capped.
	Seconds float64
	Bytes   int
	// Granularity is the size of an operation of a stage that has no Bytes, or is Capped.
	Granularity int
	// Capped: operations of Granularity bytes are repeated until Seconds have passed, by
	// rank 0's clock, not a calibrated number of times. Computing, IRing and Wait cannot
	// be capped.
	Capped bool
	// ID connects stages IRing with the Wait that completes them; above 0.
	ID int
	// Involved is the number of ranks that use files, from rank 0 on; 0: all.
	Involved int
}

// mostRows and mostBytes bound what a stage allocates: 2 GiB.
const (
	mostRows  = 1 << 14
	mostBytes = 1 << 31
	mostTime  = 1e6 // seconds
)

// Check checks a stage by itself.
func (s *Stage) Check() error {
	switch {
	case s.Kind < 0 || s.Kind >= kinds:
		return fmt.Errorf("there is no stage type %d", int(s.Kind))
	case math.IsNaN(s.Seconds) || s.Seconds < 0 || s.Seconds > mostTime:
		return fmt.Errorf("%v: a time of %v s", s.Kind, s.Seconds)
	case s.Bytes < 0 || s.Bytes > mostBytes || s.Granularity < 0 || s.Granularity > mostBytes:
		return fmt.Errorf("%v: %d bytes, granularity %d", s.Kind, s.Bytes, s.Granularity)
	case s.Involved < 0:
		return fmt.Errorf("%v: %d involved processes", s.Kind, s.Involved)
	}
	if s.Kind.computes() {
		switch {
		case s.Seconds <= 0:
			return fmt.Errorf("%v: a stage that computes needs a time above 0", s.Kind)
		case s.Granularity < 1:
			return fmt.Errorf("%v: a stage that computes needs a granularity of at least 1", s.Kind)
		case s.Kind == Matrix && s.Granularity > mostRows:
			return fmt.Errorf("%v: %d rows are more than %d", s.Kind, s.Granularity, mostRows)
		}
		return nil
	}
	switch {
	case s.Bytes == 0 && s.Seconds == 0:
		return fmt.Errorf("%v: neither bytes nor a time", s.Kind)
	case s.Capped && s.Seconds == 0:
		return fmt.Errorf("%v: capped by a time of 0", s.Kind)
	case s.Granularity < 1 && (s.Bytes == 0 || s.Capped):
		return fmt.Errorf("%v: a granularity of at least 1 is needed without bytes, and with a cap of time", s.Kind)
	case (s.Kind == IRing || s.Kind == Wait) && s.ID < 1:
		return fmt.Errorf("%v: identifier %d is not above 0", s.Kind, s.ID)
	}
	return nil
}

// Check checks the stages of an iteration: each of them, and that each IRing is followed
// by one Wait with its identifier, which has only such stages.
func Check(list []Stage) error {
	var all []error
	for i := range list {
		s := &list[i]
		if err := s.Check(); err != nil {
			all = append(all, fmt.Errorf("stage %d: %w", i, err))
			continue
		}
		before, behind := 0, 0
		for j := range list {
			t := &list[j]
			if t.ID != s.ID {
				continue
			}
			switch {
			case t.Kind == IRing && j < i:
				before++
			case t.Kind == Wait && j > i:
				behind++
			}
		}
		switch {
		case s.Kind == IRing && behind != 1:
			all = append(all, fmt.Errorf("stage %d: %v: %d waits behind it have identifier %d, not one", i, s.Kind, behind, s.ID))
		case s.Kind == Wait && before == 0:
			all = append(all, fmt.Errorf("stage %d: %v: nothing before it has identifier %d", i, s.Kind, s.ID))
		}
	}
	return errors.Join(all...)
}

// size returns the number of bytes that an operation moves.
func (s *Stage) size() int {
	if s.Bytes > 0 && !s.Capped {
		return s.Bytes
	}
	return s.Granularity
}

// timed reports whether the number of operations is determined by a time.
func (s *Stage) timed() bool {
	return s.Kind != Wait && (s.Kind.computes() || s.Bytes == 0 && (!s.Capped || s.Kind == IRing))
}

// CG returns the stages of a conjugate gradient iteration, as published runs emulate it:
// computing for some seconds on one rank, two sums of 8 bytes, and a vector of some bytes
// that all ranks gather.
func CG(seconds float64, vectorBytes int) []Stage {
	return []Stage{
		{Kind: Pi, Seconds: seconds, Granularity: 8000},
		{Kind: Allreduce, Bytes: 8},
		{Kind: Allreduce, Bytes: 8},
		{Kind: Allgather, Bytes: vectorBytes},
	}
}
