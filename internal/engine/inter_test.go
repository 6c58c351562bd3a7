// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/match"
	"gompi/internal/engine/shmcoll"
)

// interJob is four engines with an intercommunicator between ranks 0, 1 and
// ranks 2, 3.
func interJob(t *testing.T) []*node {
	t.Helper()
	ns, _ := testJobOf(t, 4, nil, nil)
	all := ns[0].ctx.Members
	low, high := wire.MembersOf(all.At(0), all.At(1)), wire.MembersOf(all.At(2), all.At(3))
	for i, n := range ns {
		local, remote := low, high
		if i >= 2 {
			local, remote = high, low
		}
		c, err := n.NewInterContext(wire.ContextID{Creator: proc(1), Serial: 7}, local, remote, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.ctx = c
	}
	return ns
}

// cross sends each rank's In to the local and to the remote rank with the
// other number, in one round.
var cross = collectives.Algorithm{
	Rounds:  func(*collectives.Args) int { return 1 },
	Scratch: func(*collectives.Args) int64 { return 0 },
	Round: func(a *collectives.Args, _ int, dst []collectives.Step) []collectives.Step {
		peer := int32(1 - a.Rank)
		for _, remote := range []bool{false, true} {
			at := int64(0)
			if remote {
				at = 1
			}
			dst = append(dst,
				collectives.Step{Kind: collectives.Recv, Remote: remote, Peer: peer, A: collectives.Ref{Buf: collectives.Out, Off: at, Len: 1}},
				collectives.Step{Kind: collectives.Send, Remote: remote, Peer: peer, A: collectives.Ref{Buf: collectives.In, Len: 1}})
		}
		return dst
	},
}

// Local and remote ranks of one number are told apart.
func TestInterSteps(t *testing.T) {
	ns := interJob(t)
	var wg sync.WaitGroup
	for i, n := range ns {
		wg.Go(func() {
			for round := range 200 {
				in, out := []byte{byte(4*round + i)}, make([]byte, 2)
				f := n.Collective(n.ctx, &CollArgs{
					Op: "cross", Alg: &cross,
					Call: shmcoll.Call{In: buffer.Of(in), Out: buffer.Of(out), Unit: 1, Args: collectives.Args{Op: collectives.OpAllgather, Rank: n.ctx.Rank, Size: 2, Remote: 2, Count: 1}},
				})
				local := i ^ 1
				if want := [2]byte{byte(4*round + local), byte(4*round + (local+2)%4)}; f != nil || [2]byte(out) != want {
					t.Errorf("rank %d round %d: %v, %v; want %v", i, round, out, f, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A collective that cannot be made on one rank ends on all others, on both
// sides.
func TestInterRefused(t *testing.T) {
	ns := interJob(t)
	var wg sync.WaitGroup
	for i, n := range ns {
		wg.Go(func() {
			a := CollArgs{
				Op: "cross", Alg: &cross,
				Call: shmcoll.Call{In: buffer.Of(make([]byte, 1)), Out: buffer.Of(make([]byte, 2)), Unit: 1, Args: collectives.Args{Op: collectives.OpAllgather, Rank: n.ctx.Rank, Size: 2, Remote: 2, Count: 1}},
			}
			if i == 3 {
				n.Refuse(n.ctx, &a)
				return
			}
			f := n.Collective(n.ctx, &a)
			if f == nil && i == 1 {
				return // it needs nothing of rank 3, and may end before the news
			}
			if f.Code() != fault.Aborted || f.Peer != 1 || f.Local != (i == 2) {
				t.Errorf("rank %d: %+v", i, f)
			}
		})
	}
	wg.Wait()
}

// A culprit is named in the teller's terms, and checked.
func TestAccused(t *testing.T) {
	inter := interJob(t)[0].ctx
	intra, _ := testJobOf(t, 2, nil, nil)
	for _, x := range []struct {
		c      *Context
		teller member
		fault  fault.Fault
		want   member
		ok     bool
	}{
		{inter, 0, fault.Fault{Peer: 1}, ^member(1), true},               // the other side's remote rank is ours
		{inter, 0, fault.Fault{Peer: 1, Local: true}, 1, true},           // its local rank is remote
		{inter, ^member(0), fault.Fault{Peer: 1}, 1, true},               // this side's remote rank
		{inter, ^member(0), fault.Fault{Peer: 1, Local: true}, -2, true}, // this side's local rank
		{inter, 0, fault.Fault{Peer: 2}, 0, false},
		{inter, 0, fault.Fault{Peer: 2, Local: true}, 0, false},
		{inter, 0, fault.Fault{Peer: match.MaxSource + 1}, 0, false},
		{intra[0].ctx, 1, fault.Fault{Peer: 1}, 1, true},
		{intra[0].ctx, 1, fault.Fault{Peer: 2}, 0, false},
		{intra[0].ctx, 1, fault.Fault{Peer: 1, Local: true}, 0, false},
	} {
		x.fault.Class = fault.Left
		s, named, ok := x.c.accused(x.teller, culprit(&x.fault))
		if ok != x.ok || ok && (!named || s != x.want) {
			t.Errorf("teller %d accuses %+v: seat %d, %t, %t; want %d, %t", x.teller, x.fault, s, named, ok, x.want, x.ok)
		}
	}
	if _, named, ok := inter.accused(0, 0); named || !ok {
		t.Error("nobody is accused")
	}
	if _, _, ok := inter.accused(0, culpritLocal); ok {
		t.Error("nobody of the local group is accepted")
	}
}

// What meets under one hash and is not the same is not taken for it.
func TestMeetMismatch(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	a := MeetArgs{Op: "Meet", Members: ns[0].ctx.Members, Key: []byte("one"), Context: wire.ContextID{Creator: proc(1), Serial: 3}}
	text := meetText(&a)
	forged := append([]byte(nil), text...)
	forged[len(forged)-1]++
	c, err := ns[0].meetContext(&a, text)
	if err != nil {
		t.Fatal(err)
	}
	ns[0].meetTell(c, "Meet", forged)
	if _, f := ns[1].Meet(&a); f.Code() != fault.Mismatch {
		t.Errorf("a forged message gives %+v", f)
	}
	ns[0].meetTell(c, "Meet", text)
	if id, f := ns[1].Meet(&a); f != nil || id != a.Context {
		t.Errorf("the next one gives %v, %+v", id, f)
	}
	if n := len(ns[1].meetings); n != 0 {
		t.Errorf("%d meetings are left", n)
	}
}
