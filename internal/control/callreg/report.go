// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/internal/base/wire"
)

// Report describes for users what the processes of a job wait for. Processes with the same wait
// share a line, the largest group first. Then follow the groups that differ from the majority,
// processes that wait for others that cannot answer, and a cycle of processes that wait for each
// other. Lines end with \n.
func Report(procs []ProcEntries) string { return reportAt(procs, time.Now()) }

func reportAt(procs []ProcEntries, now time.Time) string {
	if len(procs) == 0 {
		return "no processes\n"
	}
	n := newNames(procs)
	var sb strings.Builder
	groups := gather(procs)
	// If most processes do the same, the others are the interesting ones.
	odd := len(groups) > 1 && len(procs) > 2 && 2*len(groups[0].calls) > len(procs)
	for i, g := range groups {
		if odd && i == 1 {
			sb.WriteString("odd ones:\n")
		}
		fmt.Fprintf(&sb, "  %s: %s\n", n.list(g.procs()), g.describe(n, now))
		g.unmatched(&sb, n)
		if missing := g.missing(); missing != "" {
			fmt.Fprintf(&sb, "    not there: %s of the communicator\n", missing)
		}
	}
	waitsInVain(&sb, procs, n)
	cycle(&sb, procs, n, now)
	return sb.String()
}

// call is one entry of a process, or the fact that it has none.
type call struct {
	proc  *ProcEntries
	entry *Entry // nil: the process has none
}

// groupKey is what calls must have in common to share a line.
type groupKey struct {
	note        string
	running     bool
	op          string
	comm        wire.ContextID
	commSize    int
	tag         int
	caller      string
	holder      wire.ProcID
	holderWaits bool
}

type group struct {
	key   groupKey
	calls []call
}

// gather groups all calls. The largest group comes first, and groups of equal size are in the order
// of their first processes.
func gather(procs []ProcEntries) []*group {
	byKey := map[groupKey]*group{}
	var groups []*group
	add := func(k groupKey, c call) {
		g := byKey[k]
		if g == nil {
			g = &group{key: k}
			byKey[k] = g
			groups = append(groups, g)
		}
		g.calls = append(g.calls, c)
	}
	for i := range procs {
		p := &procs[i]
		switch {
		case p.Note != "":
			add(groupKey{note: p.Note}, call{p, nil})
		case len(p.Entries) == 0:
			add(groupKey{note: "in no blocking call"}, call{p, nil})
		default:
			for j := range p.Entries {
				e := &p.Entries[j]
				add(groupKey{
					running:     e.Running,
					op:          e.Op,
					comm:        e.Comm,
					commSize:    e.CommSize,
					tag:         e.Tag,
					caller:      e.Caller,
					holder:      e.Holder,
					holderWaits: e.HolderWaits,
				}, call{p, e})
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(len(b.calls), len(a.calls)) })
	return groups
}

func (g *group) procs() []*ProcEntries {
	list := make([]*ProcEntries, len(g.calls))
	for i, c := range g.calls {
		list[i] = c.proc
	}
	return list
}

func (g *group) describe(n *names, now time.Time) string {
	if g.key.note != "" {
		return g.key.note
	}
	e := g.calls[0].entry
	if e.Running {
		text := "at work in " + e.Op
		if e.Caller != "" {
			text += ", at " + e.Caller
		}
		return text
	}
	parts := []string{e.Op + g.peers()}
	if held := n.holder(e); held != "" {
		parts = append(parts, held)
	}
	switch collective := e.Peer == NoPeer; {
	case e.Tag == NoTag:
	case collective && e.Tag >= 0 && e.Tag < firstPersistent:
		parts = append(parts, fmt.Sprintf("collective call %d", e.Tag+1))
	case !collective:
		parts = append(parts, fmt.Sprintf("tag %d", e.Tag))
	}
	lo, hi := e.Bytes, e.Bytes
	first, last := e.Since, e.Since
	for _, c := range g.calls[1:] {
		lo, hi = min(lo, c.entry.Bytes), max(hi, c.entry.Bytes)
		if c.entry.Since.Before(first) {
			first = c.entry.Since
		}
		if c.entry.Since.After(last) {
			last = c.entry.Since
		}
	}
	switch {
	case e.Tag == NoTag:
	case lo == hi:
		parts = append(parts, fmt.Sprintf("%d bytes", lo))
	default:
		parts = append(parts, fmt.Sprintf("%d to %d bytes", lo, hi))
	}
	if e.CommSize > 0 {
		parts = append(parts, commName(e))
	}
	long, short := age(now, first), age(now, last)
	if long == short {
		parts = append(parts, "for "+long)
	} else {
		parts = append(parts, fmt.Sprintf("for %s to %s", short, long))
	}
	if e.Caller != "" {
		parts = append(parts, "at "+e.Caller)
	}
	return strings.Join(parts, ", ")
}

func commName(e *Entry) string { return fmt.Sprintf("%s of %d", e.Comm.Label(), e.CommSize) }

func age(now, since time.Time) string {
	d := now.Sub(since)
	if d < 0 {
		d = 0
	}
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// peers describes the peers of the group's calls in a few words.
func (g *group) peers() string {
	e := g.calls[0].entry
	same, shift := true, true
	delta := distance(e)
	for _, c := range g.calls[1:] {
		same = same && c.entry.Peer == e.Peer
		shift = shift && c.entry.Peer >= 0 && distance(c.entry) == delta
	}
	switch {
	case same && e.Peer == AnyPeer:
		return " with any rank"
	case same && e.Peer < 0:
		return ""
	case same:
		return fmt.Sprintf(" with rank %d", e.Peer)
	case shift && delta == 0:
		return " with itself"
	case shift && e.Peer >= 0 && 2*delta > e.CommSize:
		return fmt.Sprintf(" with rank-%d", e.CommSize-delta)
	case shift && e.Peer >= 0:
		return fmt.Sprintf(" with rank+%d", delta)
	}
	const few = 8
	var list []string
	for _, c := range g.calls[:min(few, len(g.calls))] {
		list = append(list, peerName(c.entry.Peer))
	}
	if len(g.calls) > few {
		list = append(list, "...")
	}
	return " with ranks " + strings.Join(list, ",")
}

func peerName(peer int) string {
	switch peer {
	case AnyPeer:
		return "any"
	case NoPeer:
		return "none"
	}
	return fmt.Sprint(peer)
}

// distance returns how many ranks ahead the peer is, in a ring of all ranks.
func distance(e *Entry) int {
	if e.CommSize <= 0 {
		return 0
	}
	return ((e.Peer-e.Rank)%e.CommSize + e.CommSize) % e.CommSize
}

// unmatched lists messages that the group's receives do not match.
func (g *group) unmatched(sb *strings.Builder, n *names) {
	const most = 4
	count := 0
	for _, c := range g.calls {
		if c.entry == nil || c.entry.Unmatched == "" {
			continue
		}
		if count++; count <= most {
			fmt.Fprintf(sb, "    not matched; at %s there is instead %s\n", n.one(c.proc.Proc), c.entry.Unmatched)
		}
	}
	if count > most {
		fmt.Fprintf(sb, "    and likewise at %d more\n", count-most)
	}
}

// missing names the ranks of the communicator that are not in the same collective call. It
// returns "" if there are none.
func (g *group) missing() string {
	if g.key.note != "" || g.key.running || g.calls[0].entry.Peer != NoPeer || strings.HasPrefix(g.key.op, "Wait") {
		return ""
	}
	var there []int
	for _, c := range g.calls {
		there = append(there, c.entry.Rank)
	}
	slices.Sort(there)
	var gaps []string
	n, next := 0, 0
	for _, r := range append(there, g.key.commSize) {
		if r > g.key.commSize {
			return "" // no process of ours writes this
		}
		if r > next {
			gaps = append(gaps, span(next, r-1))
			n += r - next
		}
		next = max(next, r+1)
	}
	if n == 0 {
		return ""
	}
	if n == 1 {
		return "rank " + gaps[0]
	}
	return "ranks " + join(gaps)
}

// names names processes in texts: by rank if that is unique, otherwise by serial, as when a job has
// several worlds.
type names struct {
	bySerial bool
	procs    map[wire.ProcID]*ProcEntries
}

func newNames(procs []ProcEntries) *names {
	n := &names{procs: map[wire.ProcID]*ProcEntries{}}
	seen := map[int]bool{}
	for i := range procs {
		p := &procs[i]
		n.procs[p.Proc] = p
		if p.Name != "" {
			continue
		}
		n.bySerial = n.bySerial || seen[p.Rank]
		seen[p.Rank] = true
	}
	return n
}

func (n *names) number(p *ProcEntries) int {
	if n.bySerial {
		return int(p.Proc.Serial)
	}
	return p.Rank
}

func (n *names) one(id wire.ProcID) string {
	p := n.procs[id]
	switch {
	case p != nil && p.Name != "":
		return p.Name
	case p != nil && !n.bySerial:
		return fmt.Sprintf("rank %d", p.Rank)
	}
	return fmt.Sprintf("process %d", id.Serial)
}

// holder describes the process that keeps a call waiting, if that is not its peer. It returns "" if
// there is none.
func (n *names) holder(e *Entry) string {
	switch {
	case e.Holder == (wire.ProcID{}):
		return ""
	case e.HolderWaits:
		return "in line behind " + n.one(e.Holder)
	}
	return "held by " + n.one(e.Holder)
}

// list returns "rank 3" or "ranks 0-2,4 (4)", followed by the processes with names.
func (n *names) list(procs []*ProcEntries) string {
	var nums []int
	var called []string
	for _, p := range procs {
		if p.Name != "" {
			called = append(called, p.Name)
		} else {
			nums = append(nums, n.number(p))
		}
	}
	slices.Sort(called)
	if len(nums) > 0 {
		called = slices.Insert(called, 0, n.numbers(nums))
	}
	return strings.Join(called[:min(len(called), 20)], ", ")
}

func (n *names) numbers(nums []int) string {
	slices.Sort(nums)
	nums = slices.Compact(nums)
	word := "rank"
	if n.bySerial {
		word = "process"
	}
	if len(nums) == 1 {
		return fmt.Sprintf("%s %d", word, nums[0])
	}
	if n.bySerial {
		word = "processe"
	}
	var spans []string
	for i := 0; i < len(nums); {
		j := i
		for j+1 < len(nums) && nums[j+1] == nums[j]+1 {
			j++
		}
		spans = append(spans, span(nums[i], nums[j]))
		i = j + 1
	}
	return fmt.Sprintf("%ss %s (%d)", word, join(spans), len(nums))
}

func span(first, last int) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// join joins ranges and bounds the length of the line.
func join(spans []string) string {
	const most = 50
	if len(spans) > most {
		return strings.Join(spans[:most], ",") + ",..."
	}
	return strings.Join(spans, ",")
}
