// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"time"
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
	serials := make([]uint32, len(list))
	for i := range list {
		serials[i] = list[i].Proc.Serial
	}
	held := s.agent.hold(serials)
	s.mu.Unlock()
	for i, calls := range readCalls(held) {
		list[i].Calls = calls
	}
	return list
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
