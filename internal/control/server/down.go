// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gompi/internal/control/callreg"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
)

// reserveWait is how long an agent may take to reserve slots, whose memory takes time.
const reserveWait = time.Minute

// maxTools is how many tools of a host may have a request at a time.
const maxTools = 64

// downLinks is a head's connections with agents, and the questions that are open. Server.mu guards
// it.
type downLinks struct {
	links []*link.Link // by host; nil: the agent is here, or lost
	asked map[uint32]*question
	last  uint32
	tools map[toolID]chan bool
}

// question is a question that an agent has to answer.
type question struct {
	id   uint32
	host uint32
	take func(r *protocol.Report) (last bool) // with mu held
	done chan struct{}                        // answered, or never to be
	over bool                                 // done is closed
	err  error                                // why it never will be
}

// toolID names a tool by its host and the number that the agent there has given it.
type toolID struct{ host, id uint32 }

// reach connects a head with its agents; nil is one in the same process.
func (s *Server) reach(hosts []*link.Link) {
	s.down = downLinks{links: slices.Clone(hosts), asked: map[uint32]*question{}, tools: map[toolID]chan bool{}}
	for i, l := range hosts {
		if l == nil {
			continue
		}
		host := uint32(i)
		link.On(l, func(r *protocol.Report) error { return s.heard(host, r) })
		l.OnEnd(func(why error) { s.hostLost(host, why) })
	}
}

// heard takes a report of an agent.
func (s *Server) heard(host uint32, r *protocol.Report) error {
	turn{s}.Lock()
	defer turn{s}.Unlock()
	switch r.Kind {
	case protocol.ReportReserved, protocol.ReportCalls:
		if q := s.down.asked[r.ID]; q != nil && q.host == host && q.take(r) {
			s.down.end(q, nil)
		}
	case protocol.ReportTool:
		return s.toolAsks(toolID{host, r.ID}, r.Frame)
	case protocol.ReportMore, protocol.ReportNoMore:
		if t := s.down.tools[toolID{host, r.ID}]; t != nil {
			select {
			case t <- r.Kind == protocol.ReportMore:
			default:
				return errors.New("a tool reads what was not sent")
			}
		}
	case protocol.ReportFrame:
		s.head.Take(host, r)
		s.flush() // what follows comes first
		if l := s.down.links[host]; l != nil {
			l.Send(&protocol.Command{Kind: protocol.CmdTaken, Serial: r.Serial, Count: uint32(r.Frame.Weight())})
		}
	default:
		s.head.Take(host, r)
	}
	return nil
}

// hostLost takes the end of an agent, and so of all that its host had of the job.
func (s *Server) hostLost(host uint32, why error) {
	s.step(func() {
		s.down.links[host] = nil
		for _, q := range s.down.asked {
			if q.host == host {
				s.down.end(q, lostAgent(host, why))
			}
		}
		for id, t := range s.down.tools {
			if id.host == host {
				close(t)
				delete(s.down.tools, id)
			}
		}
		if s.closed || errors.Is(why, link.ErrClosed) {
			return
		}
		text := lostAgent(host, why).Error()
		s.head.HostLost(host, text)
		if f := s.cfg.HostLost; f != nil {
			s.calls.add(func() { f(host, text) })
		}
	})
}

func lostAgent(host uint32, why error) error {
	if why == io.EOF {
		why = errors.New("it has closed the connection")
	}
	return fmt.Errorf("the agent of host %d is lost: %w", host, why)
}

// ask puts a question to an agent; mu is held.
func (s *Server) ask(host uint32, o protocol.Command, take func(r *protocol.Report) (last bool)) *question {
	s.down.last++
	q := &question{id: s.down.last, host: host, take: take, done: make(chan struct{})}
	s.down.asked[q.id] = q
	o.ID = q.id
	if l := s.down.links[host]; l != nil {
		l.Send(&o)
	} else {
		s.down.end(q, fmt.Errorf("host %d has no agent", host))
	}
	return q
}

// end ends a question; mu is held.
func (d *downLinks) end(q *question, err error) {
	delete(d.asked, q.id)
	if !q.over {
		q.over, q.err = true, err
		close(q.done)
	}
}

// reserveOn takes places on a host.
func (s *Server) reserveOn(host uint32, n int) (reservation uint32, err error) {
	if s.agent != nil {
		return s.reserve(n)
	}
	var q *question
	var why string
	s.step(func() {
		q = s.ask(host, protocol.Command{Kind: protocol.CmdReserve, Count: uint32(n)}, func(r *protocol.Report) bool {
			reservation, why = r.Count, r.Text
			return true
		})
	})
	limit := time.NewTimer(reserveWait)
	defer limit.Stop()
	select {
	case <-q.done:
	case <-s.done:
	case <-limit.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, protocol.ErrClosed
	case !q.over:
		// If they come late they are not needed.
		q.take = func(r *protocol.Report) bool {
			if l := s.down.links[host]; l != nil && r.Count != 0 {
				l.Send(&protocol.Command{Kind: protocol.CmdUnbind, ID: r.Count})
			}
			return true
		}
		return 0, fmt.Errorf("the agent of host %d does not answer within %v", host, reserveWait)
	case q.err != nil:
		return 0, q.err
	case reservation == 0:
		return 0, errors.New(why)
	}
	return reservation, nil
}

// callsOf is the question for the blocking calls and the use of all processes of a host.
type callsOf struct {
	*question
	calls map[uint32][]callreg.Entry // by serial
	used  map[uint32]protocol.Used   // likewise
}

// askCalls asks all agents; mu is held.
func (s *Server) askCalls() (qs []*callsOf) {
	for i, l := range s.down.links {
		if l == nil {
			continue
		}
		c := &callsOf{calls: map[uint32][]callreg.Entry{}, used: map[uint32]protocol.Used{}}
		c.question = s.ask(uint32(i), protocol.Command{Kind: protocol.CmdCalls}, func(r *protocol.Report) bool {
			if r.Serial != 0 && s.head.On(c.host, r.Serial) {
				c.calls[r.Serial], c.used[r.Serial] = r.Calls, r.Used
			}
			return r.Serial == 0
		})
		qs = append(qs, c)
	}
	return qs
}

// fill completes the report of a process of this host; mu is held.
func (c *callsOf) fill(s *Server, r *protocol.StackReport) {
	if !s.head.On(c.host, r.Proc.Serial) {
		return
	}
	r.Used = c.used[r.Proc.Serial]
	if r.Answered {
		return // it has told its calls itself, and more of them
	}
	r.Calls = c.calls[r.Proc.Serial]
	if !c.over && r.Calls == nil && r.State == protocol.Joined {
		r.Silent = fmt.Sprintf("the agent of host %d does not answer", c.host)
	}
}

// toolAsks answers a tool of another host, one piece at a time; mu is held.
func (s *Server) toolAsks(id toolID, f protocol.Frame) error {
	l := s.down.links[id.host]
	switch {
	case l == nil:
		return nil
	case s.down.tools[id] != nil:
		return fmt.Errorf("tool %d asks twice", id.id)
	case len(s.down.tools) >= maxTools*len(s.down.links):
		return errors.New("too many tools")
	}
	more := make(chan bool, 1)
	s.down.tools[id] = more
	f.Body = bytes.Clone(f.Body)
	s.aside(func() {
		last := false
		err := s.tool(f, func(frame []byte) bool {
			h, _, err := protocol.ParseHead(frame)
			last = err == nil && h.Kind == protocol.KindReply
			l.Send(&protocol.Command{Kind: protocol.CmdTool, ID: id.id, Frame: frame})
			if last {
				return true
			}
			select {
			case ok := <-more:
				return ok
			case <-s.done:
				return false
			}
		})
		if err != nil {
			l.Send(&protocol.Command{Kind: protocol.CmdTool, ID: id.id, Frame: protocol.ShortFrame(f.ID, 0, protocol.Failure(err))})
		}
		s.step(func() {
			if s.down.tools[id] == more {
				delete(s.down.tools, id)
			}
		})
	})
	return nil
}
