// SPDX-License-Identifier: Apache-2.0

package collectives

import "testing"

func TestStrings(t *testing.T) {
	for o := range Op(NumOps) {
		got, err := ParseOp(o.String())
		if err != nil || got != o {
			t.Errorf("ParseOp(%q) = %v, %v", o, got, err)
		}
	}
	s := Step{Kind: Reduce, Left: true, A: Ref{Scratch, 2, 3}, B: Ref{Out, 0, 3}}
	if got := s.String(); got != "reduce out[0:3] = scratch[2:5] op out[0:3]" {
		t.Error(got)
	}
	s = Step{Kind: Send, Remote: true, Peer: 4, A: Ref{In, 0, 1}}
	if got := s.String(); got != "send in[0:1] to remote 4" {
		t.Error(got)
	}
}
