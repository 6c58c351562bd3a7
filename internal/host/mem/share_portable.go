// SPDX-License-Identifier: Apache-2.0

//go:build race || !amd64

package mem

// These copies are ordinary ones. The race detector does not see memory that assembly
// touches, and other processors have no such instructions here.

func stringsFast() bool { return false }

func prefetchWrite([]byte) {}

func moveString(dst, src []byte) { copy(dst, src) }
