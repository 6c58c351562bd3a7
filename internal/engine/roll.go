// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"gompi/internal/calls"
	"gompi/internal/rollcall"
)

// entry describes a blocking call for the roll call. It runs on the goroutine
// of the call, whose caller it names.
func (ws *waiters) entry(op calls.Name, c *Context, rank, tag int32, size int64) rollcall.Entry {
	en := rollcall.Entry{Op: string(op), Peer: int(rank), Tag: int(tag), Bytes: size, Since: time.Now(), Caller: ws.caller()}
	if c == nil {
		return en
	}
	if c.whole != nil {
		c = c.whole // it waits for more than one
	}
	en.Comm, en.CommSize, en.Rank = c.ID, c.Members.Len(), c.Rank
	if rank >= 0 && c.exists(seat(rank)) {
		en.PeerProc = c.procAt(seat(rank))
	}
	return en
}

// site is how a goroutine came to wait: frames of this library, and that of
// its caller or callers.
type site [14]uintptr

// maxSites bounds the descriptions that are kept.
const maxSites = 1024

// caller is the innermost frame outside this library. Descriptions are kept:
// making one allocates, and the same loop waits again and again.
func (ws *waiters) caller() string {
	var at site
	runtime.Callers(3, at[:])
	text, ok := ws.sites[at]
	if !ok {
		text = outermost()
		if ws.sites == nil || len(ws.sites) >= maxSites {
			ws.sites = map[site]string{}
		}
		ws.sites[at] = text
	}
	return text
}

// Caller is where the program called the function of this library that asks.
func Caller() string { return outermost() }

func outermost() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	for {
		f, more := frames.Next()
		name := f.Function
		if !inside(name) || !more {
			return fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, name[strings.LastIndexByte(name, '/')+1:])
		}
	}
}

// inside reports whether a function belongs to the library.
func inside(name string) bool {
	for _, pkg := range [...]string{"mpi.", "mpi/value.", "rma.", "internal/"} {
		if strings.HasPrefix(name, "gompi/"+pkg) {
			return true
		}
	}
	return false
}
