// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"sort"

	"gompi/collectives"
)

// twin is the model once more, slow and simple: whole schedules, a list of all
// messages of each pair, and ranks that are tried again and again in random
// order.
type twin struct {
	c     *Call
	m     *Machine
	ranks []*twinRank
	pairs map[pair][]*twinMessage
}

type twinRank struct {
	rounds  [][]collectives.Step
	round   int
	sent    bool
	now     float64
	leaves  float64
	out, in [2]float64
	taken   map[pair]int
}

type twinMessage struct {
	Message
	first float64
}

// simulate returns the time and all messages that were received.
func (w *twin) simulate(rnd *rand.Rand) (usec float64, trace []Message, stuck bool) {
	w.pairs = map[pair][]*twinMessage{}
	a := w.c.arguments()
	for i := range w.c.Ranks {
		r := &twinRank{taken: map[pair]int{}}
		for k := range w.c.Alg.Rounds(a.at(i)) {
			r.rounds = append(r.rounds, w.c.Alg.Round(a.at(i), k, nil))
		}
		w.ranks = append(w.ranks, r)
	}
	for progress := true; progress; {
		progress = false
		for _, i := range rnd.Perm(w.c.Ranks) {
			r := w.ranks[i]
			if r.round == len(r.rounds) {
				continue
			}
			if !r.sent {
				w.sendAll(i, r)
				r.sent, progress = true, true
			}
			if got, ok := w.arrived(i, r); ok {
				trace = append(trace, w.receiveAll(i, r, got)...)
				progress = true
			}
		}
	}
	for _, r := range w.ranks {
		stuck = stuck || r.round < len(r.rounds)
		usec = max(usec, r.now)
	}
	return usec, trace, stuck
}

func (w *twin) class(a, b int) (LogGP, int) {
	if k := w.c.PerNode; k > 1 && a/k == b/k {
		return w.m.Node, 1
	}
	return w.m.Net, 0
}

func (w *twin) sendAll(i int, r *twinRank) {
	r.leaves = 0
	for _, s := range r.rounds[r.round] {
		if s.Kind != collectives.Send {
			continue
		}
		p, class := w.class(i, int(s.Peer))
		bytes := s.A.Len * int64(w.c.ElemBytes)
		m := &twinMessage{Message: Message{From: i, To: int(s.Peer), Bytes: bytes, Start: r.now}}
		r.now += p.Overhead
		at := max(r.now, r.out[class])
		stream := float64(max(1, bytes)-1) * p.PerByte
		r.out[class] = at + p.Gap + stream
		r.leaves = max(r.leaves, at+stream)
		m.first = at + p.Latency
		k := pair{int32(i), s.Peer}
		w.pairs[k] = append(w.pairs[k], m)
	}
}

// arrived returns the messages of a rank's round if all are there.
func (w *twin) arrived(i int, r *twinRank) ([]*twinMessage, bool) {
	taken := map[pair]int{}
	var got []*twinMessage
	for _, s := range r.rounds[r.round] {
		if s.Kind != collectives.Recv {
			continue
		}
		k := pair{s.Peer, int32(i)}
		n := r.taken[k] + taken[k]
		if n >= len(w.pairs[k]) {
			return nil, false
		}
		got = append(got, w.pairs[k][n])
		taken[k]++
	}
	for k, n := range taken {
		r.taken[k] += n
	}
	return got, true
}

func (w *twin) receiveAll(i int, r *twinRank, got []*twinMessage) []Message {
	sort.SliceStable(got, func(x, y int) bool {
		if got[x].first != got[y].first {
			return got[x].first < got[y].first
		}
		return got[x].From < got[y].From
	})
	var trace []Message
	for _, m := range got {
		p, class := w.class(m.From, i)
		stream := float64(max(1, m.Bytes)-1) * p.PerByte
		at := max(m.first, r.in[class])
		r.in[class] = at + p.Gap + stream
		r.now = max(r.now, at+stream) + p.Overhead
		m.End = r.now
		trace = append(trace, m.Message)
	}
	work := 0.0
	for _, s := range r.rounds[r.round] {
		if s.Kind == collectives.Reduce || s.Kind == collectives.Copy {
			work += float64(s.A.Len*int64(w.c.ElemBytes)) * w.m.Gamma
		}
	}
	r.now = max(r.now, r.leaves) + work
	r.sent = false
	r.round++
	return trace
}

// byPair sorts messages by their pair and keeps the order inside each.
func byPair(ms []Message) []Message {
	slices.SortStableFunc(ms, func(a, b Message) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	return ms
}
