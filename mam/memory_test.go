// SPDX-License-Identifier: Apache-2.0

package mam

import "testing"

// TestFreshUsedAgain: what the program has no more is free before new memory is taken.
func TestFreshUsedAgain(t *testing.T) {
	m := new(Module)
	_, old := m.newMemory(minReclaimBytes)
	m.retire(old)
	if _, b := m.newMemory(minReclaimBytes); b.bytes != minReclaimBytes {
		t.Fatalf("%d bytes, not %d", b.bytes, minReclaimBytes)
	}
	if old.at.Value() != nil {
		t.Error("memory that nobody has was not free when new memory was taken")
	}
}

// TestFreshLeavesSlices: memory that the program still has is not used again.
func TestFreshLeavesSlices(t *testing.T) {
	m := new(Module)
	old, b := m.newMemory(minReclaimBytes)
	for i := range old {
		old[i] = 7
	}
	m.retire(b)
	fresh, _ := m.newMemory(minReclaimBytes)
	for i := range fresh {
		if fresh[i] != 0 {
			t.Fatalf("byte %d of new memory is %d", i, fresh[i])
		}
		fresh[i] = 1
	}
	for i := range old {
		if old[i] != 7 {
			t.Fatalf("byte %d of memory that is still held became %d", i, old[i])
		}
	}
	if len(m.retired) > 0 {
		t.Errorf("%d blocks are looked at again: each change would collect for them", len(m.retired))
	}
}
