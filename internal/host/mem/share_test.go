// SPDX-License-Identifier: Apache-2.0

package mem

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Put and Take copy what copy does, and touch nothing beside it, at all places
// in lines and around the lengths where they change their way.
func TestPutAndTake(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 2*chunkBytes)
	for i := range src {
		src[i] = byte(rnd.Uint32())
	}
	lengths := []int{streamMin - 1, streamMin, streamMin + 1, streamMin + lineBytes - 1, 0, 1, 7, 8, 63, 64, 65, 300, putMin - 1, putMin, putMin + 1, takeMin - 1, takeMin, takeMin + 1, 4096, 5000, 16 << 10, chunkBytes, chunkBytes + 1}
	for name, f := range map[string]func(dst, src []byte) int{"Put": Put, "PutNear": PutNear, "Take": Take, "Past": Stream} {
		for _, n := range lengths {
			for range 20 {
				at, from, more := rnd.IntN(130), rnd.IntN(130), rnd.IntN(3)
				got := bytes.Repeat([]byte{0xa5}, at+n+130)
				want := bytes.Clone(got)
				copy(want[at:at+n], src[from:from+n])
				if k := f(got[at:at+n], src[from:from+n+more]); k != n {
					t.Fatalf("%s of %d bytes: %d", name, n, k)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%s of %d bytes from %d to %d: wrong", name, n, from, at)
				}
			}
		}
		if n := f(make([]byte, 3), make([]byte, 5000)); n != 3 {
			t.Errorf("%s to 3 bytes: %d", name, n)
		}
	}
}

// FuzzPast: each way past the cache copies what copy does, wherever it begins and ends.
func FuzzPast(f *testing.F) {
	f.Add([]byte("some bytes"), 3, 5, 300)
	f.Fuzz(func(t *testing.T, pattern []byte, at, from, n int) {
		at, from, n = int(uint(at)%(2*lineBytes)), int(uint(from)%(2*lineBytes)), int(uint(n)%(1<<14))
		src := make([]byte, from+n)
		for i := range src {
			if len(pattern) > 0 {
				src[i] = pattern[i%len(pattern)] + byte(i/len(pattern))
			}
		}
		got := bytes.Repeat([]byte{0xa5}, at+n+1)
		if k := Stream(got[at:at+n], src[from:]); k != n || !bytes.Equal(got[at:at+n], src[from:]) || got[at+n] != 0xa5 || at > 0 && got[at-1] != 0xa5 {
			t.Fatalf("%d bytes from %d to %d", n, from, at)
		}
		streams(t, src[from:])
		// Behind the end only what is in its line is lost.
		end := n / lineBytes * lineBytes
		if n > end {
			end += lineBytes
		}
		lines := aligned(end + lineBytes)
		for i := range lines {
			lines[i] = 0xa5
		}
		if k := StreamLines(lines, src[from:]); k != n || !bytes.Equal(lines[:n], src[from:]) || !bytes.Equal(lines[end:], bytes.Repeat([]byte{0xa5}, lineBytes)) {
			t.Fatalf("%d bytes from %d to lines", n, from)
		}
		if k := StreamLines(lines[:n], src[from:]); k != n || !bytes.Equal(lines[:n], src[from:]) {
			t.Fatalf("%d bytes from %d to no more lines", n, from)
		}
	})
}

// The string instruction and the loop over lines do what their twins do.
func FuzzMove(f *testing.F) {
	f.Add([]byte("some bytes"), 3, 5)
	f.Fuzz(func(t *testing.T, src []byte, at, n int) {
		at = int(min(uint(at)%64, uint(len(src))))
		n = int(min(uint(n), uint(len(src))))
		if at+n > len(src) {
			n = len(src) - at
		}
		got := make([]byte, n+2)
		Prefetch(got[1 : n+1])
		if moveString(got[1:n+1], src[at:at+n]); !bytes.Equal(got[1:n+1], src[at:at+n]) || got[0] != 0 || got[n+1] != 0 {
			t.Fatalf("%d bytes at %d: %x", n, at, got)
		}
	})
}

// aligned is memory that begins with a line.
func aligned(n int) []byte {
	b := make([]byte, n+lineBytes)
	return b[toLine(b):][:n]
}
