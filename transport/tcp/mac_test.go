// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"
)

func checkMAC(t *testing.T, key [macBytes]byte, a, b []byte) {
	t.Helper()
	h := newHash()
	h.write(a)
	h.write(b)
	if got, want := h.sum(), sha256.Sum256(append(append([]byte(nil), a...), b...)); got != want {
		t.Fatalf("hash of %d and %d bytes is %x, want %x", len(a), len(b), got, want)
	}
	m := hmac.New(sha256.New, key[:])
	m.Write(a)
	m.Write(b)
	got := mac(&key, a, b)
	if want := [macBytes]byte(m.Sum(nil)); got != want || !sameMAC(&got, &want) {
		t.Fatalf("code of %d and %d bytes is %x, want %x", len(a), len(b), got, want)
	}
	for i := range got {
		other := got
		other[i] ^= 1 << (i % 8)
		if sameMAC(&got, &other) {
			t.Fatalf("a code that differs in byte %d is the same", i)
		}
	}
}

// The code is that of the standard library, for all lengths around those of the
// blocks.
func TestMAC(t *testing.T) {
	text := make([]byte, 3*hashBlock+2)
	var key [macBytes]byte
	for i := range text {
		text[i] = byte(7 * i)
		key[i%macBytes] += byte(i)
	}
	for n := range text {
		for _, cut := range []int{0, n / 3, n} {
			checkMAC(t, key, text[:cut], text[cut:n])
		}
	}
}

func FuzzMAC(f *testing.F) {
	f.Add([]byte("key"), []byte("a"), []byte("b"))
	f.Fuzz(func(t *testing.T, key, a, b []byte) {
		var k [macBytes]byte
		copy(k[:], key)
		checkMAC(t, k, a, b)
	})
}
