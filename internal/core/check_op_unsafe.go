// SPDX-License-Identifier: Apache-2.0

package core

// unsafe: kernels get addresses.

import (
	"bytes"
	"runtime"
	"sync"
	"unsafe"

	"gompi/internal/data/kernel"
)

// insideOps knows the goroutines that run a user operation.
type insideOps struct {
	mu sync.Mutex
	by map[string]bool // by goroutine()
}

func (in *insideOps) set(id string, inside bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.by == nil {
		in.by = map[string]bool{}
	}
	if inside {
		in.by[id] = true
	} else {
		delete(in.by, id)
	}
}

// During is f, a user's kernel, with its goroutine noted.
func (k *Checker) During(f kernel.Func) kernel.Func {
	return func(dst, a, b unsafe.Pointer, n int64) {
		id := goroutine()
		k.inside.set(id, true)
		f(dst, a, b, n)
		k.inside.set(id, false)
	}
}

// notInside panics on a goroutine that waits for the lock that it holds itself.
// Nothing less helps there: an error would need the lock.
func (k *Checker) notInside() {
	k.inside.mu.Lock()
	defer k.inside.mu.Unlock()
	if len(k.inside.by) > 0 && k.inside.by[goroutine()] {
		panic("gompi: a user operation calls the library, which is locked while it runs (see NewOp)")
	}
}

// goroutine names the one that calls it. Go tells the number in texts only.
func goroutine() string {
	var buf [64]byte
	head := buf[:runtime.Stack(buf[:], false)]
	if i := bytes.IndexByte(head, '['); i > 0 {
		head = head[:i]
	}
	return string(head)
}
