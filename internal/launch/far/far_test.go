// SPDX-License-Identifier: Apache-2.0

package far

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"gompi/internal/control/controltest"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// frames encodes messages as they travel.
func frames(ms ...protocol.Message) []byte {
	var b []byte
	for _, m := range ms {
		b = append(b, protocol.ShortFrame(0, 0, m)...)
	}
	return b
}

func output(stream uint8, n int) protocol.Message {
	return &protocol.LaunchEvent{Kind: eventOutput, Stream: stream, Data: make([]byte, n)}
}

// What a head gets from the place of an agent is checked; more output than it has
// asked for is not kept.
func TestHostileAgent(t *testing.T) {
	tooMuch := make([]protocol.Message, window/protocol.MaxChunk+2)
	for i := range tooMuch {
		tooMuch[i] = output(1, protocol.MaxChunk)
	}
	for _, c := range []struct {
		send []byte
		why  string
	}{
		{frames(output(0, 1)), "output of stream 0"},
		{frames(output(3, 1)), "output of stream 3"},
		{frames(&protocol.LaunchEvent{Kind: eventMarked}), "a mark that was not set"},
		{frames(&protocol.LaunchEvent{Kind: uint8(launch.EvHostLost)}), "unknown event"},
		{frames(&protocol.LaunchEvent{}), "unknown event 0"},
		{frames(&protocol.LaunchEvent{Kind: eventReturn, Data: []byte("x")}), "1 bytes of input returned unasked"},
		{frames(&protocol.LaunchCommand{}), "does not belong here"},
		{frames(tooMuch...), "bytes of output unasked"},
		{frames(output(1, 9))[:20], "unexpected EOF"},
		{nil, "it has closed the connection"},
	} {
		// Nobody reads the output.
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		events := make(chan launch.Event, 9)
		ours, theirs := net.Pipe()
		l := link.New(ours)
		tell := func(ev launch.Event) { events <- ev }
		h := NewHost(l, NewOutput([2]int{int(w.Fd()), int(w.Fd())}, tell), NewInput(os.Stdin), tell)
		l.Run()
		go io.Copy(io.Discard, theirs)
		theirs.Write(c.send) // an error: it was refused early
		theirs.Close()
		select {
		case ev := <-events:
			if ev.Kind != launch.EvHostLost || !strings.Contains(ev.Text, c.why) {
				t.Errorf("%.40q: %+v; want %q", c.send, ev, c.why)
			}
		case <-time.After(controltest.Limit):
			t.Fatalf("%.40q: nothing is lost", c.send)
		}
		go io.Copy(io.Discard, r)
		h.Close()
		w.Close()
	}
}

// A head that does not take output stops who writes it, and nobody else.
func TestOutputWaitsForTheSupervisor(t *testing.T) {
	ours, theirs := net.Pipe()
	l := link.New(ours)
	a := NewReceiver(l)
	l.Run()
	got := make(chan protocol.LaunchEvent, 100)
	go func() {
		for {
			var head [protocol.FrameHead]byte
			if _, err := io.ReadFull(theirs, head[:]); err != nil {
				return
			}
			_, n, _ := protocol.ParseHead(head[:])
			body := make([]byte, n)
			io.ReadFull(theirs, body)
			var m protocol.LaunchEvent
			protocol.Decode(&m, body)
			got <- m
		}
	}()
	written := make(chan error, 1)
	go func() { written <- a.Streams().Out[0](make([]byte, 2*window)) }()
	total := 0
	for total < window {
		m := <-got
		total += len(m.Data)
	}
	a.Tell(launch.Event{Kind: launch.EvReaped})
	if m := <-got; m.Kind != uint8(launch.EvReaped) {
		t.Errorf("%d and more bytes of output nobody takes: kind %d", total, m.Kind)
	}
	select {
	case err := <-written:
		t.Errorf("output is written that nobody takes: %v", err)
	default:
	}
	theirs.Write(frames(&protocol.LaunchCommand{Kind: cmdWrote, Stream: 1, Count: window}))
	if err := <-written; err != nil {
		t.Error(err)
	}
	// The end of the head ends the wait.
	go func() { written <- a.Streams().Out[0](make([]byte, 3*window)) }()
	theirs.Close()
	if err := <-written; err == nil {
		t.Error("output is written without a head")
	}
	l.Close()
}

// What an agent gets from the place of a head is checked.
func TestHostileSupervisor(t *testing.T) {
	for _, c := range []struct {
		send []byte
		why  string
	}{
		{frames(&protocol.LaunchCommand{Kind: 99}), "unknown command 99"},
		{frames(&protocol.LaunchCommand{Kind: cmdSetup}), "unknown command"},
		{frames(&protocol.LaunchCommand{Kind: cmdWrote, Stream: 3}), "stream 3"},
		{frames(&protocol.LaunchCommand{Kind: cmdInput}, &protocol.LaunchCommand{Kind: cmdInput}), "input that was not asked for"},
		{frames(&protocol.LaunchEvent{}), "does not belong here"},
	} {
		ours, theirs := net.Pipe()
		l := link.New(ours)
		NewReceiver(l)
		why := make(chan error, 1)
		l.OnEnd(func(err error) { why <- err })
		l.Run()
		theirs.Write(c.send)
		if err := <-why; !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.40q: %v; want %q", c.send, err, c.why)
		}
		theirs.Close()
		l.Close()
	}
}

func TestSetup(t *testing.T) {
	read := func(b []byte, whole bool) (*Setup, error) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			theirs.Write(b)
			if !whole {
				theirs.Close()
			}
		}()
		return ReadSetup(ours)
	}
	good := &Setup{Job: 7, Host: 3, Options: launch.Options{Apps: []launch.App{{NP: 2, Argv: []string{"a", "b c"}}}, Tag: true, Stdin: launch.StdinAll}}
	var wire bytes.Buffer
	ours, theirs := net.Pipe()
	go func() { good.Write(ours); ours.Close() }()
	io.Copy(&wire, theirs)
	s, err := read(wire.Bytes(), true)
	if err != nil || s.Job != 7 || s.Host != 3 || s.Options.Apps[0].Argv[1] != "b c" || !s.Options.Tag || s.Options.Stdin != launch.StdinAll {
		t.Errorf("%+v, %v", s, err)
	}
	for _, b := range [][]byte{
		nil, wire.Bytes()[:5], wire.Bytes()[:wire.Len()-1], []byte("SSH-2.0-OpenSSH\r\n"),
		frames(&protocol.LaunchEvent{}), frames(&protocol.LaunchCommand{Kind: cmdDrain}), frames(&protocol.LaunchCommand{Kind: cmdSetup, Data: []byte("{")}), frames(&protocol.LaunchCommand{Kind: cmdSetup, Data: []byte("{}")}),
	} {
		if s, err := read(b, false); err == nil {
			t.Errorf("%.40q is a setup: %+v", b, s)
		}
	}
}
