// SPDX-License-Identifier: Apache-2.0

//go:build race || !amd64

package mem

// Under the race detector, which sees no memory that assembly touches, as on
// other processors, the copies are ordinary ones.

func stringsFast() bool { return false }

func own([]byte) {}

func move(dst, src []byte) { copy(dst, src) }
