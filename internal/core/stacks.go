// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"

	"gompi/internal/engine"
)

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= 16<<20 {
			return buf[:n]
		}
		buf = make([]byte, 2*len(buf))
	}
}

// withoutOwn leaves the library's own goroutines out of a dump: they are the same in
// every process, and only counted.
func withoutOwn(dump []byte) []byte {
	var out bytes.Buffer
	own := 0
	for g := range bytes.SplitSeq(bytes.TrimSpace(dump), []byte("\n\n")) {
		if ownGoroutine(string(g)) {
			own++
			continue
		}
		out.WriteString(fromUser(string(g)))
		out.WriteString("\n\n")
	}
	if own > 0 {
		fmt.Fprintf(&out, "%d goroutines of gompi itself are left out\n", own)
	}
	return out.Bytes()
}

// fromUser leaves out the frames above the program's own that belong to the
// library, and says in the first line which of its functions was called.
func fromUser(stack string) string {
	head, frames, _ := strings.Cut(stack, "\n")
	lines := strings.Split(frames, "\n")
	call := -1
	for i := 0; i+1 < len(lines) && ownFrame(lines[i]); i += 2 {
		if strings.HasPrefix(lines[i], "gompi/") {
			call = i
		}
	}
	if call < 0 || call+2 >= len(lines) || strings.HasPrefix(lines[call+2], "created by ") {
		return stack
	}
	name := strings.TrimPrefix(lines[call], "gompi/")
	if i := strings.LastIndexByte(name, '('); i > 0 {
		name = name[:i]
	}
	return fmt.Sprintf("%s, in %s]:\n%s", strings.TrimSuffix(head, "]:"), name, strings.Join(lines[call+2:], "\n"))
}

// ownGoroutine reports whether nothing but this library, and what it uses of
// Go's, is on a goroutine's stack and has started it.
func ownGoroutine(stack string) bool {
	_, frames, _ := strings.Cut(stack, "\n")
	for line := range strings.SplitSeq(frames, "\n") {
		if line == "" || line[0] == '\t' {
			continue
		}
		if !ownFrame(strings.TrimPrefix(line, "created by ")) {
			return false
		}
	}
	return true
}

// ownFrame reports whether a function is the library's, or of what it uses.
func ownFrame(line string) bool {
	if engine.Inside(line) {
		return true
	}
	for _, pkg := range [...]string{"internal/", "net.", "os.", "runtime.", "sync.", "syscall."} {
		if strings.HasPrefix(line, pkg) {
			return true
		}
	}
	return false
}
