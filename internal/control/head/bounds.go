// SPDX-License-Identifier: Apache-2.0

package head

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// What processes ask for decides how long answers and tables get. A request beyond a bound
// is refused; what was taken before stays.

const (
	// maxOpBytes bounds what is kept of operations, all together.
	maxOpBytes = 1 << 26
	opEntry    = 1 << 10 // counts of each
	// maxChangeBytes bounds what a member is told of a change.
	maxChangeBytes = protocol.MaxBody / 2
	// maxRoundBytes bounds the reports of collections of stacks that are under way.
	maxRoundBytes = 1 << 28
	// maxAsked bounds the pages on which members of one set ask for the changes of another:
	// of a process, and of all.
	maxAsked    = 1 << 8
	maxAllAsked = 1 << 12
	// maxSending bounds what one process is sent in one step: an agent would drop it sooner.
	maxSending = 1 << 26
)

// Tells: members are told of the sets of their part of a change at once.
func (o owner) Tells(in []uint32, leave, stay []wire.ProcID, join int, result bool) error {
	h := o.h
	bytes, kept, sets := 0, 0, 0
	tell := func(ranges, hosts int) {
		const uri = 64 // with its number
		bytes += uri + 24*ranges + 8*min(hosts, protocol.MaxHostRuns)
	}
	for _, s := range in {
		if t := h.sets[s]; t != nil {
			tell(len(t.members.Ranges()), len(t.hosts))
		}
	}
	made := func(list []wire.ProcID, join int) error {
		var b wire.MembersBuilder
		for _, p := range list {
			b.Add(wire.Range{First: p, Count: 1})
		}
		n := len(b.Members().Ranges()) + join
		if n > protocol.MaxRanges {
			return protocol.TooMany("a set of %d ranges of processes, at most %d allowed", n, protocol.MaxRanges)
		}
		tell(n, len(list)+join)
		kept, sets = kept+setEntry+24*n, sets+1
		return nil
	}
	err := made(leave, 0)
	if err == nil && result {
		err = made(stay, min(join, 1))
	}
	if err == nil && join > 0 {
		err = made(nil, 1)
		tell(0, join)
	}
	switch n := h.setBytes + kept; {
	case err != nil:
		return err
	case bytes > maxChangeBytes:
		return protocol.TooMany("the sets of a change take %d bytes, at most %d allowed", bytes, maxChangeBytes)
	case n > maxSetBytes:
		return noSetBytes(n)
	case len(h.sets)+sets > maxSets:
		return h.noSets()
	}
	return nil
}

// submitBytes is about what is kept of a request.
func submitBytes(m *protocol.Submit) int {
	n := opEntry + len(m.COL)
	for _, r := range requests(&m.Request) {
		n += 16 * (len(r.In) + len(r.Out) + len(r.Join) + len(r.Sizes) + len(r.On))
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, list := range [][]string{p.Names, p.Argv, p.Hosts} {
			for _, s := range list {
				n += len(s) + 16
			}
		}
	}
	return n
}

// weigh brings up to date what counts of an operation: once it is over, what it has come
// to.
func (h *Head) weigh(o *op) {
	h.opBytes -= o.size
	o.parts, o.names = nil, nil
	o.size = opEntry
	for i := range o.body.Outputs {
		o.size += 16 + 4*len(o.body.Outputs[i].Joining)
	}
	for _, list := range [][]protocol.SetName{o.body.Names, o.shown.Inputs} {
		for _, s := range list {
			o.size += 24 + len(s.Name)
		}
	}
	h.opBytes += o.size
}

// noOp refuses an operation that there is no room to keep.
func (h *Head) noOp(bytes int) error {
	return &tooMuch{protocol.Refused("the operations of the job would take %d bytes, at most %d allowed", h.opBytes+bytes, maxOpBytes)}
}

// tooMuch is a refusal that need not last.
type tooMuch struct{ error }

func (e *tooMuch) Unwrap() []error { return []error{e.error, change.ErrBusy} }
