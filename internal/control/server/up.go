// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"

	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
)

// upLink is an agent's connection with its head. Server.mu guards all but link.
type upLink struct {
	link  *link.Link             // nil: the head is here
	tools map[uint32]chan []byte // pieces of answers, by number of the tool's question
	last  uint32
}

// obey connects an agent with its head.
func (s *Server) obey(l *link.Link) {
	s.up = upLink{link: l, tools: map[uint32]chan []byte{}}
	link.On(l, func(o *protocol.Command) error {
		o.Frame = bytes.Clone(o.Frame) // it may wait in a queue
		o.Page.Body = bytes.Clone(o.Page.Body)
		s.ordered(o)
		return nil
	})
	l.OnEnd(func(error) { s.headLost() })
}

// ordered carries out a command of the head, or begins to answer it.
func (s *Server) ordered(o *protocol.Command) {
	turn{s}.Lock()
	defer turn{s}.Unlock()
	switch o.Kind {
	case protocol.CmdReserve:
		s.aside(func() {
			r := protocol.Report{Kind: protocol.ReportReserved, ID: o.ID}
			var err error
			if r.Count, err = s.reserve(int(o.Count)); err != nil {
				r.Text = err.Error()
			}
			s.up.link.Send(&r)
		})
	case protocol.CmdCalls:
		s.aside(func() { s.tellCalls(o.ID) })
	case protocol.CmdTool:
		// There is room for the one piece that was asked for.
		select {
		case s.up.tools[o.ID] <- o.Frame:
		default:
		}
	default:
		s.agent.Take(o)
	}
}

// tellCalls reports the blocking calls and the use of all processes of this host, and then that
// these were all.
func (s *Server) tellCalls(id uint32) {
	s.mu.Lock()
	serials, held := s.agent.HoldAll()
	s.mu.Unlock()
	for i, h := range held {
		calls, used := h.Look()
		if s.up.link.Room() {
			s.up.link.Send(&protocol.Report{Kind: protocol.ReportCalls, ID: id, Serial: serials[i], Calls: calls, Used: used})
		}
	}
	s.up.link.Send(&protocol.Report{Kind: protocol.ReportCalls, ID: id})
}

// askHead passes on the request of a tool, and the answer.
func (s *Server) askHead(f protocol.Frame, tell func(frame []byte) bool) error {
	if _, err := toolRequest(&f); err != nil {
		return err
	}
	pieces := make(chan []byte, 1)
	s.mu.Lock()
	s.up.last++
	id := s.up.last
	s.up.tools[id] = pieces
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.up.tools, id)
	}()
	s.up.link.Send(&protocol.Report{Kind: protocol.ReportTool, ID: id, Frame: f})
	for {
		select {
		case frame := <-pieces:
			next := protocol.Report{Kind: protocol.ReportMore, ID: id}
			if !tell(frame) {
				next.Kind = protocol.ReportNoMore
			}
			if h, _, err := protocol.ParseHead(frame); err != nil || h.Kind == protocol.KindReply {
				return nil
			}
			s.up.link.Send(&next)
			if next.Kind == protocol.ReportNoMore {
				return nil
			}
		case <-s.up.link.Ended():
			return nil
		case <-s.done:
			return nil
		}
	}
}

// headLost ends all connections: without a head no process can go on.
func (s *Server) headLost() {
	s.step(func() {
		const why = "the connection with gompirun is lost"
		s.agent.Take(&protocol.Command{Kind: protocol.CmdEnding, Text: why})
		s.ln.Shut(why)
	})
}
