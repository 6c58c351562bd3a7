// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"bytes"
	"testing"

	"gompi/internal/base/wire"
	"pgregory.net/rapid"
)

// TestLinkModel compares a link with a plain queue.
func TestLinkModel(t *testing.T) {
	type frame struct {
		h wire.Header
		p []byte
	}
	rapid.Check(t, func(t *rapid.T) {
		var (
			l     link
			model []frame
			used  [][]byte // payloads in use, and what they must hold
			want  [][]byte
			count uint64
			held  int // bytes in model and used
		)
		payload := bytes.Repeat([]byte{0}, eagerMax)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				// Small ones mostly; large ones reach the last ring.
				size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, eagerMax)).Draw(t, "bytes")
				times := rapid.IntRange(1, 20).Draw(t, "times")
				for range times {
					count++
					for i := range payload[:size] {
						payload[i] = byte(count) + byte(i)
					}
					h := wire.Header{count, ^count, count << 32, 0}
					if !l.put(&h, payload[:size]) {
						if held+size < ringMax/4 {
							t.Fatalf("no room for %d bytes beside %d", size, held)
						}
						l.starved.Store(true)
						return
					}
					model = append(model, frame{h, bytes.Clone(payload[:size])})
					held += int(frameBytes(size))
					if held > 2*ringMax {
						t.Fatalf("holds %d bytes", held)
					}
				}
			},
			"get": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "times") {
					if empty := l.empty(); empty != (len(model) == 0) {
						t.Fatalf("empty says %v, there are %d", empty, len(model))
					}
					var h wire.Header
					p, ok := l.get(&h)
					if ok != (len(model) > 0) {
						t.Fatalf("get says %v, there are %d", ok, len(model))
					}
					if !ok {
						return
					}
					if h != model[0].h || !bytes.Equal(p, model[0].p) {
						t.Fatalf("got header %x and %d bytes, want %x and %d", h, len(p), model[0].h, len(model[0].p))
					}
					used, want = append(used, p), append(want, model[0].p)
					model = model[1:]
				}
			},
			"release": func(t *rapid.T) {
				for i, p := range used {
					if !bytes.Equal(p, want[i]) {
						t.Fatalf("payload %d of %d changed while in use", i, len(used))
					}
					held -= int(frameBytes(len(p)))
				}
				used, want = nil, nil
				starved := l.starved.Load()
				told := l.release()
				if told && !starved {
					t.Fatal("a sender is told of room that wants none")
				}
				if starved && !told && len(model) == 0 {
					t.Fatal("an empty link leaves its sender starved")
				}
			},
		})
	})
}

// FuzzDescriptor: whatever a peer sends as a descriptor, only the offer that
// it names exactly is taken, and once.
func FuzzDescriptor(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x69\x6e\x70\x31\x01\x00\x00\x00\x00\x00\x00\x00\x64\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x69\x6e\x70\x31\x01\x00\x00\x00\x00\x00\x00\x00\x65\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x69\x6e\x70\x31\x02\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, desc []byte) {
		o := &offer{id: 1, buf: make([]byte, 100)}
		b := offerTable{offers: map[uint64]*offer{1: o}}
		got, err := b.take(desc)
		good := string(desc) == "\x69\x6e\x70\x31\x01\x00\x00\x00\x00\x00\x00\x00\x64\x00\x00\x00\x00\x00\x00\x00"
		if (err == nil) != good || (got == o) != good {
			t.Fatalf("take(%x) = %v, %v", desc, got, err)
		}
		if _, err := b.take(desc); err == nil {
			t.Fatalf("take(%x) works twice", desc)
		}
	})
}
