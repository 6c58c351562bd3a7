// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"fmt"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// malformed returns the refusal of a request that no head would accept.
func malformed(format string, args ...any) *RefusedError {
	return &RefusedError{Class: mpi.ErrArg, Text: fmt.Sprintf("%v: "+format, append([]any{change.ErrMalformed}, args...)...)}
}

// check refuses a request that exceeds the bounds of the protocol.
func (r *Request) check() error {
	switch {
	case r.Kind == Multi && len(r.Parts) == 0:
		return malformed("multi without parts")
	case r.Kind != Multi && len(r.Parts) > 0:
		return malformed("%v of %d parts", r.Kind, len(r.Parts))
	}
	for _, l := range []struct {
		what      string
		n, atMost int
	}{
		{"parts", len(r.Parts), protocol.MaxParts},
		{"inputs", len(r.In), protocol.MaxInputs},
		{"sets of newcomers", len(r.Add), protocol.MaxInputs},
		{"processes less", r.Sub, protocol.MaxMembers},
		{"ranks that leave", len(r.Ranks), protocol.MaxRanges},
		{"processes in all", r.Size, protocol.MaxMembers},
		{"processes at least", r.Min, protocol.MaxMembers},
		{"processes at most", r.Max, protocol.MaxMembers},
		{"processes preferably", r.Pref, protocol.MaxMembers},
		{"sizes", len(r.Sizes), change.MaxSizes},
		{"names of outputs", len(r.Names), protocol.MaxNames},
		{"words to run", len(r.Command), protocol.MaxWords},
		{"hosts", len(r.Hosts), protocol.MaxNames},
		{"bytes for the resource manager", len(r.COL), protocol.MaxCOL},
	} {
		if l.n < 0 || l.n > l.atMost {
			return malformed("%d %s, at most %d allowed", l.n, l.what, l.atMost)
		}
	}
	for _, n := range r.Add {
		if n < 1 || n > change.MaxJoin {
			return malformed("%v of %d processes, 1 to %d allowed", r.Kind, n, change.MaxJoin)
		}
	}
	for _, n := range r.Sizes {
		if n < 1 || n > protocol.MaxMembers {
			return malformed("%v to one of %d processes, 1 to %d allowed", r.Kind, n, protocol.MaxMembers)
		}
	}
	for _, names := range [][]string{r.Names, r.Hosts} {
		for _, name := range names {
			if len(name) > protocol.MaxName {
				return malformed("a name of %d bytes, at most %d allowed", len(name), protocol.MaxName)
			}
		}
	}
	for _, word := range r.Command {
		if len(word) > protocol.MaxArgs {
			return malformed("a word of %d bytes to run, at most %d allowed", len(word), protocol.MaxArgs)
		}
	}
	if d := r.Deadlines; d.Ready < 0 || d.Accept < 0 || d.Whole < 0 {
		return malformed("deadlines %v, %v and %v", d.Ready, d.Accept, d.Whole)
	}
	for i := range r.Parts {
		if r.Parts[i].Kind == Multi {
			return malformed("part %d of multi is a multi", i)
		}
		if err := r.Parts[i].check(); err != nil {
			return err
		}
	}
	return nil
}
