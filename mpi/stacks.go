// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
)

// stacks returns the stacks of all goroutines that run code of the program. The
// library's own are the same in every process, and only counted.
func stacks() []byte {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= 16<<20 {
			return withoutOwn(buf[:n])
		}
		buf = make([]byte, 2*len(buf))
	}
}

// withoutOwn leaves the library's own goroutines out of a dump.
func withoutOwn(dump []byte) []byte {
	var out bytes.Buffer
	own := 0
	for g := range bytes.SplitSeq(bytes.TrimSpace(dump), []byte("\n\n")) {
		if ownGoroutine(string(g)) {
			own++
			continue
		}
		out.Write(g)
		out.WriteString("\n\n")
	}
	if own > 0 {
		fmt.Fprintf(&out, "%d goroutines of gompi itself are left out\n", own)
	}
	return out.Bytes()
}

// ownGoroutine reports whether nothing but this library, and what it uses of
// Go's, is on a goroutine's stack and has started it.
func ownGoroutine(stack string) bool {
	_, frames, _ := strings.Cut(stack, "\n")
	for line := range strings.SplitSeq(frames, "\n") {
		if line == "" || line[0] == '\t' {
			continue
		}
		line = strings.TrimPrefix(line, "created by ")
		own := false
		for _, pkg := range [...]string{"gompi/internal/", "gompi/mpi.", "gompi/rma.", "gompi/transport/", "internal/", "net.", "os.", "runtime.", "sync.", "syscall."} {
			own = own || strings.HasPrefix(line, pkg)
		}
		if !own {
			return false
		}
	}
	return true
}
