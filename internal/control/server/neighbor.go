// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gompi/internal/control/agent"
	"gompi/internal/control/head"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
)

// greetWait is how long another head may take to answer.
const greetWait = 10 * time.Second

// toNeighbor sends what the head has for another head, or connects to that; mu is held.
func (s *Server) toNeighbor(nb *head.Neighbor, m *protocol.JobMessage) {
	switch l := s.abroad[nb]; {
	case m == nil && !s.closed:
		greet := s.head.Greeting(nb)
		s.aside(func() { s.call(nb, greet) })
	case m != nil && l != nil:
		l.Send(m)
	}
}

// call connects to another head.
func (s *Server) call(nb *head.Neighbor, greet *protocol.Greet) {
	ctx, cancel := context.WithTimeout(context.Background(), greetWait)
	defer cancel()
	go func() { // it ends with the call
		s.await(ctx, nil)
		cancel()
	}()
	conn, err := agent.Call(ctx, nb.Job)
	var answer protocol.Greet
	if err == nil {
		end := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		err = greetOver(conn, greet, &answer)
		if !end() && err == nil {
			err = context.Cause(ctx)
		}
	}
	s.step(func() {
		if err == nil && !s.closed {
			err = s.head.Answered(nb, &answer)
		}
		if err != nil || s.closed {
			if conn != nil {
				conn.Close()
			}
			s.head.NeighborLost(nb, err)
			return
		}
		s.join(nb, conn)
	})
}

// greetOver sends a greeting, and reads the answer.
func greetOver(conn net.Conn, greet, answer *protocol.Greet) error {
	if _, err := conn.Write(protocol.ShortFrame(0, 0, greet)); err != nil {
		return err
	}
	b := make([]byte, protocol.FrameHead)
	if _, err := io.ReadFull(conn, b); err != nil {
		return err
	}
	f, n, err := protocol.ParseHead(b)
	if err != nil {
		return protocol.ExplainVersion(err, "this job's gompirun")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	switch f.Kind {
	case protocol.KindGreet:
		return protocol.Decode(answer, body)
	case protocol.KindBye:
		return protocol.ByeError(body)
	}
	return fmt.Errorf("answer to greeting is %v", f.Kind)
}

// greeted answers the greeting of a head that has connected.
func (s *Server) greeted(conn net.Conn, m *protocol.Greet) {
	turn{s}.Lock()
	defer turn{s}.Unlock()
	if s.closed {
		conn.Close()
		return
	}
	nb, err := s.head.Greeted(m)
	answer := protocol.ShortFrame(0, 0, &protocol.Text{Kind: protocol.KindBye, Text: fmt.Sprint(err)})
	if err == nil {
		answer = protocol.ShortFrame(0, 0, s.head.Greeting(nb))
	}
	// So few bytes fit into the empty buffer of a socket, so that this does not wait.
	if _, werr := conn.Write(answer); err == nil && werr == nil {
		s.join(nb, conn)
		return
	} else if err == nil {
		s.head.NeighborLost(nb, werr)
	}
	conn.Close()
}

// join makes a link of a connection whose ends have greeted; mu is held.
func (s *Server) join(nb *head.Neighbor, conn net.Conn) {
	l := link.New(conn)
	s.abroad[nb] = l
	link.On(l, func(m *protocol.JobMessage) (err error) {
		s.step(func() { err = s.head.Heard(nb, m) })
		return err
	})
	l.OnEnd(func(why error) {
		s.step(func() {
			delete(s.abroad, nb)
			if why == io.EOF {
				why = errors.New("it has closed the connection")
			}
			s.head.NeighborLost(nb, why)
		})
	})
	l.Run()
}

// leaveNeighbors writes what is queued for other heads, and ends the links.
func (s *Server) leaveNeighbors() {
	s.mu.Lock()
	var list []*link.Link
	for _, l := range s.abroad {
		list = append(list, l)
	}
	s.mu.Unlock()
	for _, l := range list {
		l.Close()
	}
}
