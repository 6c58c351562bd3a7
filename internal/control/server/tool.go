// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gompi/internal/control/agent"
	"gompi/internal/control/callreg"
	"gompi/internal/control/change"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

// Stacks asks every joined process for its stacks, and the agents for blocking calls, and waits for
// the answers until ctx is done. The list has every process of a Snapshot. Those that have ended,
// and those that did not answer in time, have no stacks. Blocking calls come also of a process that
// does not answer.
func (s *Server) Stacks(ctx context.Context) []protocol.StackReport {
	list, told := s.stacks(ctx)
	told()
	return list
}

// stacks is Stacks. The list counts against the bound of what the head keeps until told is called.
func (s *Server) stacks(ctx context.Context) (list []protocol.StackReport, told func()) {
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
	list = s.seen(qs, func() []protocol.StackReport { return s.head.EndRound(r) })
	return list, func() { s.step(func() { s.head.Told(r) }) }
}

// Used is Stacks without what the processes themselves say, so that it disturbs none of them, and
// with their hosts and sets. It has the longest blocking call of each process.
func (s *Server) Used(ctx context.Context) []protocol.StackReport {
	var qs []*callsOf
	s.step(func() { qs = s.askCalls() })
	for _, q := range qs {
		s.await(ctx, q.done)
	}
	list := s.seen(qs, s.head.Used)
	for i := range list {
		if calls := list[i].Calls; len(calls) > 1 {
			list[i].Calls = []callreg.Entry{slices.MinFunc(calls, func(a, b callreg.Entry) int { return a.Since.Compare(b.Since) })}
		}
	}
	return list
}

// seen completes the reports of processes by what the agents have seen.
func (s *Server) seen(qs []*callsOf, reports func() []protocol.StackReport) []protocol.StackReport {
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

// await waits for an answer, until ctx is done or the server is closed.
func (s *Server) await(ctx context.Context, answered <-chan struct{}) {
	select {
	case <-answered:
	case <-ctx.Done():
	case <-s.done:
	}
}

// toolHandler answers a request of a tool, but for the reply that ends the answer: an error
// makes that a refusal. part sends one part, and is false if nobody listens any more.
type toolHandler func(s *Server, m protocol.Message, part func(protocol.Message) bool) error

// toolHandlers is the handler of each kind that a tool sends.
var toolHandlers = [256]toolHandler{
	protocol.KindList:    onTool((*Server).sendProcesses),
	protocol.KindUsed:    onTool((*Server).sendUsed),
	protocol.KindCollect: onTool((*Server).sendStacks),
	protocol.KindOps:     onTool((*Server).sendOps),
	protocol.KindSets:    onTool((*Server).sendSets),
	protocol.KindResize:  onTool((*Server).Resize),
	protocol.KindBreak:   onTool((*Server).breakOp),
}

// onTool makes a handler of a method.
func onTool[M protocol.Message](do func(*Server, M, func(protocol.Message) bool) error) toolHandler {
	return func(s *Server, m protocol.Message, part func(protocol.Message) bool) error {
		return do(s, m.(M), part)
	}
}

// toolRequest checks and decodes a frame of a tool.
func toolRequest(f *protocol.Frame) (protocol.Message, error) {
	if err := f.Check(protocol.Gompictl); err != nil {
		return nil, err
	}
	return f.Message()
}

// tool answers a request of a tool, which has one at a time. An error means that the tool broke
// the protocol.
func (s *Server) tool(f protocol.Frame, tell func(frame []byte) bool) error {
	m, err := toolRequest(&f)
	if err != nil {
		return err
	}
	var long error
	part := func(m protocol.Message) bool {
		frame, err := protocol.AppendFrame(nil, f.ID, 0, m)
		if err != nil {
			long = err
			return false
		}
		return tell(frame)
	}
	end := &protocol.Reply{}
	err = toolHandlers[f.Kind](s, m, part)
	if err = cmp.Or(err, long); err != nil {
		end = protocol.Failure(err)
	}
	part(end)
	return nil
}

// sendProcesses sends all processes that the job ever had. Spares are the last.
func (s *Server) sendProcesses(_ *protocol.Empty, part func(protocol.Message) bool) error {
	sendAll(part, reports(append(s.Snapshot(), s.Spares()...)))
	return nil
}

// sendUsed sends what each process uses. Spares are the last.
func (s *Server) sendUsed(_ *protocol.Empty, part func(protocol.Message) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookWait)
	defer cancel()
	sendAll(part, append(s.Used(ctx), reports(s.Spares())...))
	return nil
}

// reports makes reports that say nothing but how far processes are.
func reports(infos []protocol.ProcInfo) (list []protocol.StackReport) {
	for _, in := range infos {
		list = append(list, protocol.StackReport{ProcInfo: in})
	}
	return list
}

// sendStacks collects the stacks of all processes, and sends them.
func (s *Server) sendStacks(m *protocol.Collect, part func(protocol.Message) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), max(m.Wait, time.Millisecond))
	list, told := s.stacks(ctx)
	cancel()
	sendAll(part, list)
	told()
	return nil
}

func (s *Server) sendOps(_ *protocol.Empty, part func(protocol.Message) bool) error {
	sendAll(part, s.Ops())
	return nil
}

func (s *Server) sendSets(_ *protocol.Empty, part func(protocol.Message) bool) error {
	sendAll(part, listOf(s, s.head.Sets))
	return nil
}

func (s *Server) breakOp(m *protocol.Op, part func(protocol.Message) bool) error {
	return s.Break(m.Op, part)
}

// listOf calls the head with mu held.
func listOf[T any](s *Server, f func() []T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// sendAll sends all of a list to a tool, and keeps nothing of what is sent.
func sendAll[T any, P interface {
	*T
	protocol.Message
}](part func(protocol.Message) bool, list []T) {
	for i := range list {
		if !part(P(&list[i])) {
			return
		}
		list[i] = *new(T)
	}
}

// Ops returns the operations that are under way, with what they wait for, and the latest ones that
// are over.
func (s *Server) Ops() []protocol.OpReport {
	s.lookAtOps()
	return listOf(s, s.head.Ops)
}

// lookWait is how long agents may take to report progress, or the use of processes.
const lookWait = 500 * time.Millisecond

// lookAtOps asks agents for the progress of members that changes wait for.
func (s *Server) lookAtOps() {
	var l *head.Looks
	s.step(func() { l = s.head.BeginLooks() })
	ctx, cancel := context.WithTimeout(context.Background(), lookWait)
	s.await(ctx, l.Done())
	cancel()
	s.step(func() { s.head.EndLooks(l) })
}

// newsEvery is how often a tool that waits hears of its operation in the same state.
const newsEvery = time.Second

// Resize asks for a change, and passes an OpReport of each state that it reaches to part, and some
// in between. It returns when the change is over, when part is false because nobody listens, or
// when the server is closed (protocol.ErrClosed). Any other error says that there is no such set.
func (s *Server) Resize(m *protocol.Resize, part func(protocol.Message) bool) error {
	var t *head.Ticket
	var err error
	s.step(func() { t, err = s.head.Resize(m) })
	if err != nil {
		return err
	}
	return s.until(t, m.Detach, part)
}

// Break withdraws an operation that is not decided, also one that was delivered to members, and
// passes an OpReport of how it ended to part. The error says that there is no such operation.
func (s *Server) Break(number uint32, part func(protocol.Message) bool) error {
	var t *head.Ticket
	var err error
	s.step(func() { t, err = s.head.Break(number) })
	if err != nil {
		return err
	}
	return s.until(t, false, func(m protocol.Message) bool {
		if m.(*protocol.OpReport).Op.State < change.Committed {
			return true
		}
		part(m)
		return false
	})
}

// Lease sets how many slots the job may use from now on. They do not become fewer than it uses.
// Lease returns how they are used then. It is only for a Config with a Lease.
func (s *Server) Lease(slots int) (u head.Use) {
	s.step(func() { u = s.head.Lease(slots) })
	return u
}

// Slots sets how many processes the job may have from now on; 0: any number.
func (s *Server) Slots(most int) {
	s.step(func() { s.head.Slots(most) })
}

// HostSlots sets the slots of each of several hosts from now on; 0: the host has none. Processes
// that start later use them, and the next Resize or LeaseMain removes processes from a host that
// has more.
func (s *Server) HostSlots(slots []int) {
	s.step(func() { s.head.HostSlots(slots) })
}

// Crowded reports whether members of the main set are on hosts that have more processes than slots
// (HostSlots).
func (s *Server) Crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.head.Crowd()) > 0
}

// LeaseMain is Lease and a Resize of the main set to use the slots, or to give back those beyond.
// Its results are those of Resize.
func (s *Server) LeaseMain(slots int, part func(protocol.Message) bool) error {
	var t *head.Ticket
	s.step(func() { t = s.head.LeaseMain(slots) })
	return s.until(t, false, part)
}

// until passes reports of an operation to part until it is over.
func (s *Server) until(t *head.Ticket, detach bool, part func(protocol.Message) bool) error {
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
			return protocol.ErrClosed
		}
	}
}
