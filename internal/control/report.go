// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"time"

	"gompi/internal/rollcall"
	"gompi/internal/segment"
)

// Stacks asks every joined process to report and waits for the answers until
// ctx is done. The list has every process that a Snapshot has; those that have
// ended, and those that did not answer in time, come without a report. The roll call
// is read by the server itself and needs no living process.
func (s *Server) Stacks(ctx context.Context) []StackReport {
	s.mu.Lock()
	r := s.st.beginRound()
	s.flush()
	s.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-s.done:
	}
	s.mu.Lock()
	list := s.st.endRound(r)
	held := s.holdFiles()
	s.mu.Unlock()
	for i := range held {
		list[i].Calls = readCalls(held[i])
		held[i].release()
	}
	return list
}

// RollCall reads the roll call of every process that has not ended. It asks
// nobody, so it also works when processes are stopped.
func (s *Server) RollCall() []rollcall.ProcEntries {
	s.mu.Lock()
	infos := s.st.snapshot()
	held := s.holdFiles()
	s.mu.Unlock()
	list := make([]rollcall.ProcEntries, len(infos))
	for i, in := range infos {
		list[i] = rollcall.ProcEntries{Proc: in.Proc, Rank: in.Rank, Size: in.Size, Entries: readCalls(held[i])}
		held[i].release()
		if in.State != Joined {
			list[i].Note = in.State.String()
			if in.How != "" && in.State == Exited {
				list[i].Note = fmt.Sprintf("%v (%s)", in.State, in.How)
			}
		}
	}
	return list
}

// holdFiles returns the files of all that a snapshot has, nil for those without;
// the caller releases them. mu is held.
func (s *Server) holdFiles() []*files {
	all := s.st.all()
	held := make([]*files, len(all))
	for i, p := range all {
		if p.files != nil {
			p.files.retain()
			held[i] = p.files
		}
	}
	return held
}

// readCalls reads a process's roll call. A segment that cannot be mapped has
// none to show.
func readCalls(f *files) []rollcall.Entry {
	if f == nil {
		return nil
	}
	mem, err := segment.Map(f.segment, segment.RollCall, segment.RollCallBytes, false)
	if err != nil {
		return nil
	}
	calls := rollcall.Read(mem)
	if err := segment.Unmap(mem); err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return calls
}

// toolFrame answers one request of a tool. It runs on the reader's goroutine:
// a tool has one question at a time.
func (s *Server) toolFrame(p *peer, f frame) error {
	var list []StackReport
	switch f.kind {
	case kList:
		if err := decode(&emptyMsg{f.kind}, f.body); err != nil {
			return err
		}
		for _, in := range s.Snapshot() {
			list = append(list, StackReport{ProcInfo: in})
		}
	case kCollect:
		var m collectMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), max(m.wait, time.Millisecond))
		list = s.Stacks(ctx)
		cancel()
	default:
		return fmt.Errorf("frame of kind %d does not belong here", f.kind)
	}
	for i := range list {
		if !p.waitRoom() {
			return nil
		}
		p.send(appendFrame(nil, f.id, 0, &partMsg{list[i]}), nil)
		list[i] = StackReport{}
	}
	p.send(appendFrame(nil, f.id, 0, &replyMsg{}), nil)
	return nil
}
