// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"gompi/mpi"
)

// FuzzLent: what a source says that it lends is checked, whatever it is; who has another
// registry is told so.
func FuzzLent(f *testing.F) {
	good := make([]byte, snapshotHeader+3*offerBytes)
	binary.LittleEndian.PutUint32(good, 5)
	binary.LittleEndian.PutUint32(good[4:], 3)
	f.Add(good)
	f.Add(good[:snapshotHeader])
	f.Add(good[:3])
	f.Add(append(good, 0))
	stale := append([]byte(nil), good...)
	stale[0] = 6
	f.Add(stale)
	rc := &reconfiguration{m: new(Module), edition: 5, members: members{old: -1}, transfers: []*transfer{{array: &array{}}, {array: &array{}}, {array: &array{}}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		offers, err := rc.checkOffers(2, b)
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), "rank 2") || errors.Is(err, errStaleRegistry) && !errors.Is(err, mpi.ErrMismatch) {
				t.Fatal(err)
			}
			return
		case len(offers) != 3*offerBytes:
			t.Fatalf("offers of %d bytes", len(offers))
		}
		r := &reader{rc: rc, list: rc.transfers, offers: map[int][]byte{2: offers}}
		for i := range rc.transfers {
			if got, want := r.offeredBy(i, 2), strings.Trim(string(offers[i*offerBytes:][:offerBytes-8]), "\x00") != ""; got != want {
				t.Fatalf("data %d is lent: %v", i, got)
			}
			if r.offeredBy(i, 1) {
				t.Fatal("who has said nothing lends")
			}
		}
	})
}
