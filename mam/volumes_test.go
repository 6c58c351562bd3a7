// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gompi/sessions"
)

// A registry of any length comes as it was put, each value being one that a store takes;
// the first one is put when all others are there.
func TestVolumes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, sessions.MaxValue - 1, sessions.MaxValue, sessions.MaxValue + 1, 3*sessions.MaxValue + 7} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		store, last := map[string][]byte{}, ""
		if err := putVolumes(b, func(key string, v []byte) error {
			if len(v) > sessions.MaxValue || len(key) > sessions.MaxKey {
				return fmt.Errorf("%d bytes under %q", len(v), key)
			}
			store[key], last = slices.Clone(v), key
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		get := func(keys ...string) (values [][]byte, err error) {
			for _, k := range keys {
				values = append(values, store[k])
			}
			return values, nil
		}
		got, err := joinVolumes(store[registryKey], get)
		if err != nil || last != registryKey || !bytes.Equal(got, b) {
			t.Errorf("%d bytes: %d have come, %v; %s was put last", n, len(got), err, last)
		}
		if len(store) == 1 {
			continue
		}
		delete(store, volumeKey(sumOf(b), 0))
		if _, err := joinVolumes(store[registryKey], get); err == nil {
			t.Errorf("%d bytes: without a piece it is one, too", n)
		}
	}
	long := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{1}, 5), maxEncoded+1)
	for _, c := range []struct {
		head []byte
		why  string
	}{{nil, "0 bytes of a header"}, {[]byte{2}, "1 bytes of a header"}, {make([]byte, 0, 1), "0 bytes"}, {[]byte{1, 2}, "2 bytes"}, {long, fmt.Sprintf("%d bytes, at most", maxEncoded+1)}} {
		if _, err := joinVolumes(c.head, nil); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("header %v: %v", c.head, err)
		}
	}
}
