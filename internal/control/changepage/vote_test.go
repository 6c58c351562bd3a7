// SPDX-License-Identifier: Apache-2.0

package changepage

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A member's vote counts once, whoever says it and how often, in this change and in those
// before; that of a member without a vote does not count.
func TestVoteOnce(t *testing.T) {
	const members = 8
	p := newPage(t, members)
	var last Change
	begin := func(votes int) Change {
		last++
		p.Begin(last, votes, nil)
		p.Accept(last)
		return last
	}
	for range 200 {
		c := begin(members + 1)
		var commits atomic.Int32
		var all sync.WaitGroup
		for i := range members {
			m := p.Member(i, 1, 1)
			for _, vote := range []func() bool{
				func() bool { return m.Vote(c) }, func() bool { return p.VoteOf(c, i) },
				func() bool { return m.Vote(c - 1) },
			} {
				all.Go(func() {
					if vote() {
						commits.Add(1)
					}
				})
			}
		}
		all.Wait()
		if n := p.Missing(c); n != 1 || commits.Load() != 0 {
			t.Fatalf("change %d misses %d votes, and %d have committed it", c, n, commits.Load())
		}
		if _, voted := p.Progress(c, 3); !voted || !p.Vote(c) {
			t.Fatalf("change %d: the vote is not noted, or the last one does not commit", c)
		}
	}
	c := begin(1)
	p.NoVote(c, 0)
	if p.Member(0, 1, 1).Vote(c) || p.VoteOf(c, 0) || p.Missing(c) != 1 || !p.VoteOf(c, 1) {
		t.Errorf("a member without a vote has voted: %d are missing", p.Missing(c))
	}
}
