// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"

	"gompi/internal/control/callreg"
)

// maxAtWork bounds the calls that a process is said to be at work in.
const maxAtWork = 16

// atWork finds in a dump of all goroutines the calls of the library in which the
// process computes, or runs a function of the program: they wait for nobody, so the
// roll call, in which waits are, does not have them.
func atWork(dump []byte, waits []callreg.Entry) (list []callreg.Entry) {
	now := time.Now()
	for g := range bytes.SplitSeq(bytes.TrimSpace(dump), []byte("\n\n")) {
		op, caller := callIn(string(g), waits)
		if op == "" {
			continue
		}
		list = append(list, callreg.Entry{Op: op[:min(len(op), callreg.MaxOp)], Peer: callreg.NoPeer, Tag: callreg.NoTag, Since: now, Caller: caller, Running: true})
		if len(list) == maxAtWork {
			break
		}
	}
	return list
}

// callIn is the innermost call of the library on a goroutine's stack and where the
// program made it; "": there is none, or the goroutine waits.
func callIn(stack string, waits []callreg.Entry) (op, caller string) {
	head, frames, _ := strings.Cut(stack, "\n")
	lines := strings.Split(frames, "\n")
	_, state, _ := strings.Cut(head, "[")
	if len(lines) < 4 || waiting(state) && ownFrame(lines[0]) {
		return "", ""
	}
	for i := 0; i+3 < len(lines) && !strings.HasPrefix(lines[i+2], "created by "); i += 2 {
		at := place(lines[i+2], lines[i+3])
		if slices.ContainsFunc(waits, func(e callreg.Entry) bool { return e.Caller == at }) {
			return "", "" // this is the goroutine that waits there
		}
		if op == "" && strings.HasPrefix(lines[i], "gompi/") && ownFrame(lines[i]) && !ownFrame(lines[i+2]) {
			op, caller = callName(lines[i]), at
		}
	}
	return op, caller
}

// waiting reports whether a goroutine in a state of the dump waits.
func waiting(state string) bool {
	return !slices.ContainsFunc([]string{"running", "runnable", "syscall", "sleep"}, func(s string) bool { return strings.HasPrefix(state, s) })
}

// place is a frame of the dump as the roll call says it: "main.go:12 main.run".
func place(function, file string) string {
	file, _, _ = strings.Cut(strings.TrimSpace(file), " ")
	return path.Base(file) + " " + path.Base(withoutArgs(function))
}

func withoutArgs(function string) string {
	if i := strings.LastIndexByte(function, '('); i > 0 {
		return function[:i]
	}
	return function
}

// callName is a function of the library as its calls are called: "Scatterv",
// "Window.Fence"; "" for what is no call, or runs the whole program.
func callName(function string) string {
	name := strings.ReplaceAll(withoutArgs(strings.TrimPrefix(function, "gompi/")), "[...]", "")
	name = strings.NewReplacer("(*", "", ")", "").Replace(name)
	switch {
	case strings.HasPrefix(name, "internal/"), name == "mpi.Main", strings.Contains(name, ".func"):
		return ""
	}
	for _, pkg := range [...]string{"mpi.Comm.", "mpi.", "rma."} {
		if short, ok := strings.CutPrefix(name, pkg); ok {
			return short
		}
	}
	return name
}
