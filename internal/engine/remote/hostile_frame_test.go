// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// A frame lies in memory that its sender can write: it may change while it is
// served. Whatever it becomes, nobody panics, and nothing outside of the region
// is touched.
func TestFrameChangesWhileServed(t *testing.T) {
	const size, edge = 256, 64
	ss := testJobOf(t, 2)
	memory := make([]byte, size+2*edge)
	r, err := ss[1].Expose(memory[edge:edge+size:edge+size], 0)
	if err != nil {
		t.Fatal(err)
	}
	// Not in the heap, where the race detector would see the change.
	b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	var stop atomic.Bool
	var liar sync.WaitGroup
	kinds := [...]byte{framePut, frameGet, frameAccumulate, frameFetch, frameSwap, frameAsk, frameReply, frameMax, frameLock, 200}
	liar.Go(func() {
		x := rand.New(rand.NewPCG(1, 1))
		for !stop.Load() {
			b[0] = kinds[x.IntN(len(kinds))]
			if at := x.IntN(1000); at < requestBytes+groupBytes+8 {
				b[at] ^= 1 << x.IntN(8)
			}
		}
	})
	defer liar.Wait()
	defer stop.Store(true)
	p := ss[1].peerOf(ss[0].self)
	serve := func(i int) {
		ss[1].e.Lock()
		defer ss[1].e.Unlock()
		p.in.broken = nil
		q := request{kind: kinds[i%5], op: kernel.Sum, elem: dtype.Int64, handle: r.handle, nonce: r.nonce, number: p.in.number + 1, bytes: 8, groups: 1}
		q.put(b)
		(&group{length: 8, runs: 1}).put(b[requestBytes:])
		ss[1].Frame(ss[0].self, b[:requestBytes+groupBytes+q.operands()*8]) // an error, or not
	}
	for i := range 60_000 {
		serve(i)
	}
	for i, v := range memory {
		if (i < edge || i >= edge+size) && v != 0 {
			t.Fatalf("byte %d outside of the region was written", i-edge)
		}
	}
}

// The kind that was checked is the one that is served.
func TestKindIsReadOnce(t *testing.T) {
	b := make([]byte, requestBytes+groupBytes)
	q := request{kind: 200, bytes: 8, groups: 1}
	q.put(b)
	(&group{length: 8, runs: 1}).put(b[requestBytes:])
	if _, _, err := q.parse(frameGet, b, new([maxGroups]group)); err != nil || q.kind != frameGet {
		t.Errorf("kind %d, %v", q.kind, err)
	}
}
