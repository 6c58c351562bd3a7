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

// Stacks asks every joined process to report, and the agents for the roll calls of
// theirs, and waits for the answers until ctx is done. The list has every process
// that a Snapshot has; those that have ended, and those that did not answer in
// time, come without a report. A roll call needs no living process.
func (s *Server) Stacks(ctx context.Context) []control.StackReport {
	var r *head.Round
	var qs []*callsOf
	s.step(func() {
		r = s.head.BeginRound()
		qs = s.askCalls()
	})
	for _, q := range qs {
		s.await(ctx, q.done)
	}
	s.await(ctx, r.Done())
	s.mu.Lock()
	list := s.head.EndRound(r)
	for i := range list {
		for _, q := range qs {
			q.fill(s, &list[i])
		}
	}
	var held []*agent.Files
	if s.agent != nil {
		serials := make([]uint32, len(list))
		for i := range list {
			serials[i] = list[i].Proc.Serial
		}
		held = s.agent.Hold(serials)
	}
	for _, q := range qs {
		delete(s.down.asked, q.id)
	}
	s.mu.Unlock()
	for i, calls := range agent.ReadCalls(held) {
		list[i].Calls = calls
	}
	return list
}

// await waits until there is an answer, or nobody waits for it any more.
func (s *Server) await(ctx context.Context, answered <-chan struct{}) {
	select {
	case <-answered:
	case <-ctx.Done():
	case <-s.done:
	}
}

// waitOf checks what a tool asks: how long processes may take to answer, 0 if they
// are not asked.
func waitOf(f control.Frame) (time.Duration, error) {
	switch f.Kind {
	case control.KindList:
		return 0, control.Decode(&control.Empty{Kind: f.Kind}, f.Body)
	case control.KindCollect:
		var m control.Collect
		err := control.Decode(&m, f.Body)
		return max(m.Wait, time.Millisecond), err
	}
	return 0, fmt.Errorf("frame of kind %d does not belong here", f.Kind)
}

// tool answers one request of a tool: it has one question at a time.
func (s *Server) tool(f control.Frame, tell func(frame []byte) bool) error {
	wait, err := waitOf(f)
	if err != nil {
		return err
	}
	var list []control.StackReport
	if wait == 0 {
		for _, in := range s.Snapshot() {
			list = append(list, control.StackReport{ProcInfo: in})
		}
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		list = s.Stacks(ctx)
		cancel()
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
