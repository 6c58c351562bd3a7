// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"fmt"
	"strings"
	"time"

	"gompi/internal/base/wire"
)

// waitsInVain lists calls that wait for processes which cannot answer any more.
func waitsInVain(sb *strings.Builder, procs []ProcEntries, n *names) {
	const most = 20
	count := 0
	for i := range procs {
		for j := range procs[i].Entries {
			e := &procs[i].Entries[j]
			peer := n.procs[e.waitsFor()]
			if peer == nil || peer.Note == "" {
				continue
			}
			if count++; count == 1 {
				sb.WriteString("waiting in vain:\n")
			}
			if count <= most {
				fmt.Fprintf(sb, "  %s waits in %s for %s: %s\n", n.one(procs[i].Proc), e.Op, n.one(e.waitsFor()), peer.Note)
			}
		}
	}
	if count > most {
		fmt.Fprintf(sb, "  and %d more\n", count-most)
	}
}

// edge says that one process waits for another.
type edge struct {
	from  wire.ProcID
	entry *Entry
}

// cycle prints the first cycle of processes that wait for each other.
func cycle(sb *strings.Builder, procs []ProcEntries, n *names, now time.Time) {
	loop := findCycle(procs, n)
	if loop == nil {
		return
	}
	sb.WriteString("wait-for cycle:\n")
	for _, w := range loop {
		fmt.Fprintf(sb, "  %s waits for %s: %s", n.one(w.from), n.one(w.entry.waitsFor()), w.entry.Op)
		if w.entry.Holder != (wire.ProcID{}) {
			fmt.Fprintf(sb, " with rank %d, %s", w.entry.Peer, n.holder(w.entry))
		}
		if w.entry.Tag != NoTag {
			fmt.Fprintf(sb, ", tag %d, %d bytes", w.entry.Tag, w.entry.Bytes)
		}
		fmt.Fprintf(sb, ", %s, for %s", commName(w.entry), age(now, w.entry.Since))
		if w.entry.Caller != "" {
			fmt.Fprintf(sb, ", at %s", w.entry.Caller)
		}
		sb.WriteString("\n")
	}
}

// findCycle searches depth first, with an explicit stack: other processes have written the
// graph, so it may be deep.
func findCycle(procs []ProcEntries, n *names) []edge {
	next := map[wire.ProcID]int{} // entries of a visited process already followed
	onPath := map[wire.ProcID]bool{}
	for i := range procs {
		root := procs[i].Proc
		if _, seen := next[root]; seen {
			continue
		}
		next[root] = 0
		onPath[root] = true
		at, path := root, []edge(nil)
		for {
			entries := n.procs[at].Entries
			k := next[at]
			if k == len(entries) {
				onPath[at] = false
				if len(path) == 0 {
					break
				}
				at = path[len(path)-1].from
				path = path[:len(path)-1]
				continue
			}
			next[at] = k + 1
			e := &entries[k]
			to := e.waitsFor()
			if n.procs[to] == nil {
				continue
			}
			if onPath[to] {
				path = append(path, edge{at, e})
				for path[0].from != to {
					path = path[1:]
				}
				return path
			}
			if _, seen := next[to]; !seen {
				next[to] = 0
				onPath[to] = true
				path = append(path, edge{at, e})
				at = to
			}
		}
	}
	return nil
}
