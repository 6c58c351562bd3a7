// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/control/callreg"
)

// entry describes a blocking call for the blocking-call registry. It must run on the
// goroutine of the call, because it looks up the call's caller.
func (ws *waiters) entry(op fault.Call, c *Context, rank, tag int32, size int64) callreg.Entry {
	en := callreg.Entry{
		Op:     string(op),
		Peer:   int(rank),
		Tag:    int(tag),
		Bytes:  size,
		Since:  time.Now(),
		Caller: ws.caller(),
	}
	if c == nil {
		return en
	}
	if c.whole != nil {
		c = c.whole // it waits for more than one
	}
	en.Comm, en.CommSize, en.Rank = c.ID, c.Members.Len(), c.Rank
	if rank >= 0 && c.exists(member(rank)) {
		en.PeerProc = c.procAt(member(rank))
	}
	return en
}

// site is a call stack: all frames of this library (up to twenty), and as many of the
// program's as fit.
type site [32]uintptr

// maxSites bounds the descriptions that are kept.
const maxSites = 1024

// caller returns the innermost frame outside this library. It keeps descriptions: making
// one allocates, and the same loop waits again and again.
func (ws *waiters) caller() string {
	var at site
	if runtime.Callers(3, at[:]) == len(at) { // two callers may have the same ones
		return outermost()
	}
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

// Caller returns the place where the program called the running function of this library.
func Caller() string { return outermost() }

func outermost() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	for last := (runtime.Frame{}); ; {
		f, more := frames.Next()
		own := Inside(f.Function)
		if !own && last.PC != 0 && strings.HasPrefix(f.Function, "runtime.") { // a goroutine of the library
			own, more, f = true, false, last
		}
		if !own || !more {
			return fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, f.Function[strings.LastIndexByte(f.Function, '/')+1:])
		}
		last = f
	}
}

// Through reports whether a function of a package of the library, such as "mam.", is among
// the callers.
func Through(pkg string) bool {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "gompi/"+pkg) {
			return true
		}
		if !more {
			return false
		}
	}
}

// packages are those of the library. Commands, examples and tests of its module are not
// among them.
var packages = [...]string{"mpi.", "mpi/", "rma.", "sessions.", "sessions/", "mam.", "collectives/", "collectives.", "transport/", "transport.", "internal/"}

// Inside reports whether a function belongs to the library. Only the beginning of its name
// is compared.
func Inside(function string) bool {
	name, ok := strings.CutPrefix(function, "gompi/")
	return ok && slices.ContainsFunc(packages[:], func(pkg string) bool { return strings.HasPrefix(name, pkg) })
}
