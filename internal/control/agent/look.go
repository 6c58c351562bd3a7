// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"slices"

	"gompi/internal/control/callreg"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// Held is what Look needs of a process. It holds its files.
type Held struct {
	files *Files
	pid   int // 0: it has none that is its own
}

// Hold returns what Look needs of processes.
func (a *Agent) Hold(serials []uint32) []Held {
	held := make([]Held, len(serials))
	for i, serial := range serials {
		s := a.procs[serial]
		if s == nil {
			continue
		}
		switch {
		case s.connected:
			held[i].pid = s.helloPID
		case !s.reaped:
			held[i].pid = s.pid
		}
		if s.files != nil {
			s.files.retain()
			held[i].files = s.files
		}
	}
	return held
}

// HoldAll is Hold for all.
func (a *Agent) HoldAll() (serials []uint32, held []Held) {
	serials = slices.Sorted(maps.Keys(a.procs))
	return serials, a.Hold(serials)
}

// HasFiles reports whether the process has its segment.
func (h Held) HasFiles() bool { return h.files != nil }

// Look reads the roll call of a process and what it has used, and releases what is
// held. A segment that is gone, or cannot be mapped, has neither to show. It needs no
// living process, and nobody's lock.
func (h Held) Look() (calls []callreg.Entry, used protocol.Used) {
	if h.pid != 0 {
		used = usedBy(h.pid)
	}
	if h.files == nil {
		return nil, used
	}
	defer h.files.Release()
	mem, err := segment.Map(h.files.segment, segment.CallRegistry, segment.CallRegistryBytes, false)
	if err != nil {
		return nil, used
	}
	calls, used.Counters = callreg.Read(mem), callreg.ReadCounters(mem)
	if err := segment.Unmap(mem); err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return calls, used
}
