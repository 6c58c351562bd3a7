// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/binary"
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
)

// FuzzPage: whatever members write on a page, the agent carries out its orders, and
// what it reports is bounded, and can be sent. Of each four bytes the first says what
// happens, the others where and what is written, or which change is meant.
func FuzzPage(f *testing.F) {
	f.Add([]byte{1, 1, 0, 0, 2, 1, 0, 0, 0, 8, 0, 9, 8, 1, 0, 0, 10, 0, 0, 0, 3, 1, 0, 0, 5, 1, 0, 0})
	f.Add([]byte{1, 1, 0, 0, 6, 1, 0, 0, 0, 64, 0, 255, 7, 1, 0, 0, 9, 1, 0, 0, 4, 1, 0, 0, 1, 2, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		const set = 9
		r := newPageRig(t, 3)
		for i, s := range r.procs[:2] {
			r.follow(s, uint32(i+1), set)
		}
		r.work(nil)
		_, memory := r.view(1)
		for begun := uint32(0); len(script) >= 4; script = script[4:] {
			what, a, b, v := script[0]%13, script[1], script[2], script[3]
			o := protocol.PageCommand{Set: set, Change: begun, Agreed: uint64(a) + 1, Call: uint64(v), Votes: 2, Options: protocol.Options{Step: 1, Lookahead: 1}}
			switch what {
			case 0: // a member writes
				at := (int(b)<<8 | int(a)) * 8 % (len(memory) - 7)
				binary.LittleEndian.PutUint64(memory[at&^7:], uint64(v)*0x0101_0101_0101_0101)
				continue
			case 12: // and says that it has swapped the word
				r.Frame(r.procs[0].serial, protocol.Frame{Kind: protocol.KindStatusWord, Body: protocol.Encode(&protocol.StatusWord{Set: set, Change: uint32(a)})})
				r.settle()
				continue
			case 1:
				begun++
				o.Do, o.Change = protocol.PageBegin, begun
			default:
				o.Do = []protocol.PageDo{protocol.PageFix, protocol.PageWithdraw, protocol.PageBreak, protocol.PageVote, protocol.PageCommit,
					protocol.PageOver, protocol.PagePoll, protocol.PageAsk, protocol.PagePublish, protocol.PageNoVote}[what-2]
				if b > 1 {
					o.Members = r.members
				}
			}
			if begun > 0 {
				r.do(o)
			}
			r.work(nil)
			for _, w := range r.words {
				if l := &w.Progress; w.Kind == protocol.ReportProgress && (l.Begun > 2 || l.Most > changepage.MaxNumber || l.Least > changepage.MaxNumber) {
					t.Fatalf("%+v of two members", *l)
				}
				if w.Kind == protocol.ReportStatusWord && (w.Word < change.IsAccepted || w.Word > change.IsRolledBack || w.Iteration > changepage.MaxNumber+1) {
					t.Fatalf("%+v", w)
				}
				if err := protocol.Decode(&protocol.Report{}, protocol.Encode(&w)); err != nil {
					t.Fatalf("%+v: %v", w, err)
				}
			}
			r.words = nil
		}
	})
}
