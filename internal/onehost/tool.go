// SPDX-License-Identifier: Apache-2.0

package onehost

import (
	"context"
	"fmt"
	"time"

	"gompi/internal/agent"
	"gompi/internal/control"
	"gompi/internal/head"
)

// Stacks asks every joined process to report and waits for the answers until
// ctx is done. The list has every process that a Snapshot has; those that have
// ended, and those that did not answer in time, come without a report. The roll call
// is read by the server itself and needs no living process.
func (s *Server) Stacks(ctx context.Context) []control.StackReport {
	var r *head.Round
	s.step(func() { r = s.head.BeginRound() })
	select {
	case <-r.Done():
	case <-ctx.Done():
	case <-s.done:
	}
	s.mu.Lock()
	list := s.head.EndRound(r)
	serials := make([]uint32, len(list))
	for i := range list {
		serials[i] = list[i].Proc.Serial
	}
	held := s.agent.Hold(serials)
	s.mu.Unlock()
	for i, calls := range agent.ReadCalls(held) {
		list[i].Calls = calls
	}
	return list
}

// tool answers one request of a tool. It runs on the reader's goroutine: a tool
// has one question at a time.
func (s *Server) tool(f control.Frame, tell func(frame []byte) bool) error {
	var list []control.StackReport
	switch f.Kind {
	case control.KindList:
		if err := control.Decode(&control.Empty{Kind: f.Kind}, f.Body); err != nil {
			return err
		}
		for _, in := range s.Snapshot() {
			list = append(list, control.StackReport{ProcInfo: in})
		}
	case control.KindCollect:
		var m control.Collect
		if err := control.Decode(&m, f.Body); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), max(m.Wait, time.Millisecond))
		list = s.Stacks(ctx)
		cancel()
	default:
		return fmt.Errorf("frame of kind %d does not belong here", f.Kind)
	}
	for i := range list {
		if !tell(control.AppendFrame(nil, f.ID, 0, &list[i])) {
			return nil
		}
		list[i] = control.StackReport{}
	}
	tell(control.AppendFrame(nil, f.ID, 0, &control.Reply{}))
	return nil
}
