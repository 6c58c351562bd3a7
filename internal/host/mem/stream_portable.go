// SPDX-License-Identifier: Apache-2.0

//go:build race || !(amd64 || arm64)

package mem

func stream(dst, src []byte) { copy(dst, src) }

func fence() {}
