// SPDX-License-Identifier: Apache-2.0

package onehost

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gompi/internal/agent"
	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/head"
	"gompi/internal/rollcall"
)

// Stacks asks every joined process to report, and the agents for the roll calls of
// theirs, and waits for the answers until ctx is done. The list has every process
// that a Snapshot has; those that have ended, and those that did not answer in
// time, come without a report. A roll call needs no living process.
func (s *Server) Stacks(ctx context.Context) []control.StackReport {
	list, told := s.stacks(ctx)
	told()
	return list
}

// stacks is Stacks; what it returns counts against what may be kept until told is called.
func (s *Server) stacks(ctx context.Context) (list []control.StackReport, told func()) {
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
	list = s.seen(qs, func() []control.StackReport { return s.head.EndRound(r) })
	return list, func() { s.step(func() { s.head.Told(r) }) }
}

// Used is Stacks without what the processes themselves say, and with their hosts and
// sets: it disturbs no process. Of the calls of each it has the one that takes longest.
func (s *Server) Used(ctx context.Context) []control.StackReport {
	var qs []*callsOf
	s.step(func() { qs = s.askCalls() })
	for _, q := range qs {
		s.await(ctx, q.done)
	}
	list := s.seen(qs, s.head.Used)
	for i := range list {
		if calls := list[i].Calls; len(calls) > 1 {
			list[i].Calls = []rollcall.Entry{slices.MinFunc(calls, func(a, b rollcall.Entry) int { return a.Since.Compare(b.Since) })}
		}
	}
	return list
}

// seen completes the reports of processes by what the agents have seen of them.
func (s *Server) seen(qs []*callsOf, reports func() []control.StackReport) []control.StackReport {
	s.mu.Lock()
	list := reports()
	for i := range list {
		for _, q := range qs {
			q.fill(s, &list[i])
		}
	}
	var held []agent.Held
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
	for i, h := range held {
		calls, used := h.Look()
		if list[i].Used = used; !list[i].Answered { // else it has said so itself, and more
			list[i].Calls = calls
		}
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

// askedBy decodes what a tool asks.
func askedBy(f control.Frame) (m control.Message, err error) {
	switch f.Kind {
	case control.KindList, control.KindOps, control.KindSets, control.KindUsed:
		m = &control.Empty{Kind: f.Kind}
	case control.KindCollect:
		m = &control.Collect{}
	case control.KindResize:
		m = &control.Resize{}
	case control.KindBreak:
		m = &control.Op{Kind: f.Kind}
	default:
		return nil, fmt.Errorf("frame of kind %d does not belong here", f.Kind)
	}
	return m, control.Decode(m, f.Body)
}

// tool answers one request of a tool: it has one question at a time.
func (s *Server) tool(f control.Frame, tell func(frame []byte) bool) error {
	m, err := askedBy(f)
	if err != nil {
		return err
	}
	var long error
	part := func(m control.Message) bool {
		frame, err := control.AppendFrame(nil, f.ID, 0, m)
		if err != nil {
			long = err
			return false
		}
		return tell(frame)
	}
	switch m := m.(type) {
	case *control.Collect:
		ctx, cancel := context.WithTimeout(context.Background(), max(m.Wait, time.Millisecond))
		list, told := s.stacks(ctx)
		cancel()
		tellAll(part, list)
		told()
	case *control.Resize:
		err = s.Resize(m, part)
	case *control.Op:
		err = s.Break(m.Op, part)
	case *control.Empty:
		switch f.Kind {
		case control.KindList:
			var list []control.StackReport
			for _, in := range append(s.Snapshot(), s.Spares()...) {
				list = append(list, control.StackReport{ProcInfo: in})
			}
			tellAll(part, list)
		case control.KindUsed:
			ctx, cancel := context.WithTimeout(context.Background(), lookWait)
			list := s.Used(ctx)
			cancel()
			for _, in := range s.Spares() {
				list = append(list, control.StackReport{ProcInfo: in})
			}
			tellAll(part, list)
		case control.KindOps:
			tellAll(part, s.Ops())
		case control.KindSets:
			tellAll(part, listOf(s, s.head.Sets))
		}
	}
	end := &control.Reply{}
	if err = cmp.Or(err, long); err != nil {
		end = control.Failure(err)
	}
	part(end)
	return nil
}

// listOf asks the head.
func listOf[T any](s *Server, f func() []T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// tellAll tells a tool all of a list, and keeps nothing of what is told.
func tellAll[T any, P interface {
	*T
	control.Message
}](part func(control.Message) bool, list []T) {
	for i := range list {
		if !part(P(&list[i])) {
			return
		}
		list[i] = *new(T)
	}
}

// Ops are the latest operations that are over and those under way, with what these wait
// for.
func (s *Server) Ops() []control.OpReport {
	s.lookAtOps()
	return listOf(s, s.head.Ops)
}

// lookWait is how long agents may take to look at pages, or at processes.
const lookWait = 500 * time.Millisecond

// lookAtOps lets the head know how far the members are that changes wait for.
func (s *Server) lookAtOps() {
	var l *head.Looks
	s.step(func() { l = s.head.BeginLooks() })
	ctx, cancel := context.WithTimeout(context.Background(), lookWait)
	s.await(ctx, l.Done())
	cancel()
	s.step(func() { s.head.EndLooks(l) })
}

// newsEvery is how often a tool that waits hears how far its operation is, though it
// is in the same state.
const newsEvery = time.Second

// Resize asks for a change, and tells by part, as an OpReport, of each state that it
// comes to, and now and then in between. It returns when the change is over, part says
// that nobody listens, or the server is closed: control.ErrClosed. The error: there is no
// such set.
func (s *Server) Resize(m *control.Resize, part func(control.Message) bool) error {
	var t *head.Ticket
	var err error
	s.step(func() { t, err = s.head.Resize(m) })
	if err != nil {
		return err
	}
	return s.until(t, m.Detach, part)
}

// Break withdraws an operation that is not decided, also one that members were handed, and
// tells by part, as an OpReport, when it is, with what came of it. The error: nothing is known
// of the operation.
func (s *Server) Break(number uint32, part func(control.Message) bool) error {
	var t *head.Ticket
	var err error
	s.step(func() { t, err = s.head.Break(number) })
	if err != nil {
		return err
	}
	return s.until(t, false, func(m control.Message) bool {
		if m.(*control.OpReport).Op.State < change.Committed {
			return true
		}
		part(m)
		return false
	})
}

// Lease says how many slots the job may take from now on, as who decides wants it: no
// fewer than it has taken, and returns how they are used then. Only for a Config with a
// Lease.
func (s *Server) Lease(slots int) (u head.Use) {
	s.step(func() { u = s.head.Lease(slots) })
	return u
}

// Slots says how many processes the job may ever have from now on; 0: any number.
func (s *Server) Slots(most int) {
	s.step(func() { s.head.Slots(most) })
}

// HostSlots says how many processes each of several hosts is there for from now on, as a
// list of hosts has it; 0: it has none. Those that start later go by that, and the next
// Resize or LeaseMain removes who is on a host that has more.
func (s *Server) HostSlots(slots []int) {
	s.step(func() { s.head.HostSlots(slots) })
}

// Crowded reports whether members of the main set are on hosts that have more processes
// than HostSlots has said.
func (s *Server) Crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.head.Crowd()) > 0
}

// LeaseMain is Lease, and a Resize of the main set by which it takes them, or gives back
// those beyond. What it returns and tells is as with Resize.
func (s *Server) LeaseMain(slots int, part func(control.Message) bool) error {
	var t *head.Ticket
	s.step(func() { t = s.head.LeaseMain(slots) })
	return s.until(t, false, part)
}

// until tells of an operation until it is over.
func (s *Server) until(t *head.Ticket, detach bool, part func(control.Message) bool) error {
	defer s.step(func() { s.head.GiveBack(t) })
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		s.mu.Lock()
		r, done := s.head.Report(t), t.Done()
		s.mu.Unlock()
		if !part(&r) || detach || r.Op.State.Over() {
			return nil
		}
		select {
		case <-done:
		case <-tick.C:
			s.lookAtOps()
		case <-s.done:
			return control.ErrClosed
		}
	}
}
