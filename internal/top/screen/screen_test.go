// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3/color"
	"github.com/gdamore/tcell/v3/vt"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/top"
)

// terminal is tcell's emulation of one, which keeps what is written to it.
type terminal struct {
	vt.MockTerm
	mu      sync.Mutex
	written strings.Builder
	stopped int
}

func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.written.Write(b)
	t.mu.Unlock()
	return t.MockTerm.Write(b)
}

func (t *terminal) Stop() error {
	t.mu.Lock()
	t.stopped++
	t.mu.Unlock()
	return t.MockTerm.Stop()
}

// restored reports whether the terminal shows again what it showed before.
func (t *terminal) restored() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.written.String()
	enter, leave := strings.LastIndex(text, "\x1b[?1049h"), strings.LastIndex(text, "\x1b[?1049l")
	return t.stopped > 0 && enter >= 0 && leave > enter && strings.LastIndex(text, "\x1b[?25h") > strings.LastIndex(text, "\x1b[?25l")
}

func (t *terminal) line(y, width int) string {
	var b strings.Builder
	for x := range width {
		if c := t.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)}).C; c == "" {
			b.WriteByte(' ')
		} else {
			b.WriteString(c)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// showing is a view on a terminal of 80 x 12.
type showing struct {
	*terminal
	t       *testing.T
	samples chan top.Sample
	ended   chan error
	cancel  context.CancelFunc
	result  chan error
}

func show(t *testing.T) *showing {
	ctx, cancel := context.WithCancel(context.Background())
	s := &showing{terminal: &terminal{MockTerm: vt.NewMockTerm(vt.MockOptSize{X: 80, Y: 12})}, t: t,
		samples: make(chan top.Sample), ended: make(chan error, 1), cancel: cancel, result: make(chan error, 1)}
	t.Cleanup(cancel)
	v := &top.View{Title: "job 7", Describe: func(*protocol.OpReport) string { return "a change" }}
	go func() { s.result <- Show(ctx, s.terminal, v, s.samples, s.ended) }()
	return s
}

const limit = 10 * time.Second

// see waits for a text at the beginning of a line.
func (s *showing) see(y int, want string) {
	s.t.Helper()
	for end := time.Now().Add(limit); !strings.HasPrefix(s.line(y, 80), want); time.Sleep(time.Millisecond) { //archtest:sleep what a terminal shows has no bell
		if time.Now().After(end) {
			s.t.Fatalf("line %d is %q, want %q", y, s.line(y, 80), want)
		}
	}
}

func (s *showing) end() error {
	s.t.Helper()
	select {
	case err := <-s.result:
		if !s.restored() {
			s.t.Error("the terminal is not as it was")
		}
		return err
	case <-time.After(limit):
		s.t.Fatal("it does not end")
		return nil
	}
}

func sample(n int) top.Sample {
	s := top.Sample{When: time.Now()}
	for i := range n {
		s.Procs = append(s.Procs, protocol.StackReport{ProcInfo: protocol.ProcInfo{Proc: wire.ProcID{Job: 7, Serial: uint32(i + 1)}, Rank: i, Size: n, State: protocol.Joined}, Host: "here"})
	}
	return s
}

func TestShow(t *testing.T) {
	s := show(t)
	s.see(1, "no answer yet")
	s.samples <- sample(3)
	s.see(1, "3 processes")
	s.see(3, "PROCESS*")
	s.see(6, "rank 2")
	s.KeyTap(vt.KeyR)
	s.see(4, "rank 2")
	s.KeyTap(vt.KeyH)
	s.see(4, "here")
	s.KeyTap(vt.KeyH)
	s.samples <- sample(40)
	s.see(11, "1-7 of 40")
	s.KeyTap(vt.KeyPgDn)
	s.see(4, "rank 32")
	s.SetSize(vt.Coord{X: 60, Y: 20})
	s.see(19, "8-22 of 40")
	s.SetSize(vt.Coord{X: 30, Y: 4})
	s.see(0, "PROCESS^")
	s.KeyTap(vt.KeyQ)
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

// However it ends, the terminal is restored.
func TestEnds(t *testing.T) {
	bad := errors.New("the job has ended")
	for what, c := range map[string]struct {
		end  func(s *showing)
		want error
	}{
		"^C":      {func(s *showing) { s.SendRaw([]byte{3}) }, nil},
		"context": {func(s *showing) { s.cancel() }, nil},
		"the job": {func(s *showing) { s.ended <- bad }, bad},
	} {
		s := show(t)
		s.samples <- sample(2)
		s.see(1, "2 processes")
		c.end(s)
		if err := s.end(); err != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// NO_COLOR leaves bold, reverse and dim.
func TestNoColor(t *testing.T) {
	for _, value := range []string{"", "1"} {
		t.Setenv("NO_COLOR", value)
		t.Setenv("TERM", "xterm-256color")
		s := show(t)
		s.samples <- sample(1)
		s.see(1, "1 process")
		more := sample(2)
		more.When = more.When.Add(time.Second)
		s.samples <- more
		s.see(5, "rank 1")
		got := s.GetCell(vt.Coord{X: 0, Y: 5}).S.Fg()
		if coloured := got == color.XTerm2; coloured == (value != "") {
			t.Errorf("NO_COLOR=%q: a newcomer is written in colour %v", value, got)
		}
		s.KeyTap(vt.KeyQ)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	}
}
