// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"gompi/internal/control/controltest"
	"gompi/launcher/rm"
)

// limit is when a test has hung.
const limit = 20 * time.Second

func listen(t *testing.T, slots int) (name string, s *Server) {
	t.Helper()
	name = fmt.Sprintf("test-%x", rand.Uint64())
	s, err := Listen(name, "fifo", rm.NewShared(rm.Config{Policy: rm.FIFO{}}), slots, nil)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve()
	t.Cleanup(s.Close)
	return name, s
}

// takes waits until so many slots are taken by so many jobs.
func takes(t *testing.T, name string, slots, jobs int) {
	t.Helper()
	controltest.WaitFor(t, fmt.Sprintf("%d slots taken, of %d jobs", slots, jobs), func() bool {
		q, err := Ask(name)
		if err != nil {
			t.Fatal(err)
		}
		return q.Taken == slots && len(q.Jobs) == jobs
	})
}

// Jobs begin when there are slots, are told of changes, and their slots are free when
// both descriptors of a connection are closed.
func TestLease(t *testing.T) {
	name, s := listen(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if names, err := Heads(); err != nil || !strings.Contains(fmt.Sprint(names), name) {
		t.Errorf("heads %v, %v", names, err)
	}
	a, is, err := Join(name, Wants{Job: number(1), Program: "a", Start: 3})
	if err != nil || is != (State{4, 0}) {
		t.Fatalf("%+v, %v", is, err)
	}
	defer a.Close()
	if n, err := a.Begin(ctx); n != 3 || err != nil {
		t.Fatalf("it begins with %d, %v", n, err)
	}
	heard, total := make(chan struct{}, 10), make(chan int, 10)
	a.Serve(func() { heard <- struct{}{} }, func(n int) { total <- n })
	a.Step(0, rm.Arrived{Job: rm.Job{ID: 1, Size: 3}})
	b, is, err := Join(name, Wants{Job: number(2), Program: "b", Start: 2})
	if err != nil || is != (State{4, 0}) {
		t.Fatalf("%+v, %v", is, err)
	}
	defer b.Close()
	takes(t, name, 3, 2)
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	if n, err := b.Begin(short); err == nil {
		t.Errorf("it begins with %d", n)
	}
	stop()
	a.Step(0, rm.Sized{Job: 1, Size: 2})
	if n, err := b.Begin(ctx); n != 2 || err != nil {
		t.Errorf("it begins with %d, %v", n, err)
	}
	b.Step(0, rm.Arrived{Job: rm.Job{ID: 1, Size: 2}})
	// A wish that is withdrawn when it is answered changes nothing.
	a.Step(0, rm.Wished{Job: 1, Size: 4})
	b.Step(0, rm.Sized{Job: 1, Size: 1})
	s.Slots(5)
	if n := <-total; n != 5 {
		t.Errorf("%d slots", n)
	}
	<-heard
	if list := a.Step(0, rm.Wished{Job: 1, Size: 2}); len(list) != 0 {
		t.Errorf("decided %v", list)
	}
	takes(t, name, 3, 2)
	a.Step(0, rm.Wished{Job: 1, Size: 3})
	<-heard
	if list := a.Step(0); len(list) != 1 || list[0] != (rm.Decision{Job: 1, Size: 3, From: 2}) {
		t.Errorf("decided %v", list)
	}
	a.Step(0, rm.Sized{Job: 1, Size: 3})
	takes(t, name, 4, 2)
	fd, err := b.Dup()
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	<-b.Lost()
	takes(t, name, 4, 2)
	closeFD(t, fd)
	takes(t, name, 3, 1)

	s.End("enough")
	select {
	case <-a.Lost():
	case <-ctx.Done():
		t.Fatal("the end of the head is not heard")
	}
	if why := a.Why(); why != "head "+name+": enough" {
		t.Errorf("it ends: %s", why)
	}
	if _, _, err := Join(name, Wants{Job: number(3), Start: 1}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a head that ends takes a job: %v", err)
	}
	select {
	case <-s.Left():
		t.Error("a job is there yet")
	default:
	}
	a.Close()
	<-s.Left()
	s.Close()
	if _, err := Ask(name); err == nil || !strings.Contains(err.Error(), "no head") {
		t.Errorf("a head that has ended answers: %v", err)
	}
}

// One name is one head's; it is free again with the head. A job whose head is gone hears
// of it.
func TestNames(t *testing.T) {
	name, s := listen(t, 2)
	m := rm.NewShared(rm.Config{Policy: rm.FIFO{}})
	if _, err := Listen(name, "fifo", m, 2, nil); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("two heads of one name: %v", err)
	}
	for _, bad := range []string{"", "-x", "a b", "a/b", "ä", strings.Repeat("x", 65)} {
		if _, err := Listen(bad, "fifo", m, 2, nil); err == nil {
			t.Errorf("head %q", bad)
		}
		if _, _, err := Join(bad, Wants{Job: number(1), Start: 1}); err == nil {
			t.Errorf("job for %q", bad)
		}
	}
	l, _, err := Join(name, Wants{Job: number(1), Start: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Close()
	<-l.Lost()
	if _, err := l.Begin(t.Context()); err == nil && l.Why() == "" {
		t.Error("it begins")
	}
	again, err := Listen(name, "fifo", m, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// Whoever says what is no line, or may not be said, is left with the reason.
func TestStrangers(t *testing.T) {
	name, _ := listen(t, 2)
	for text, want := range map[string]string{
		"x\n":                                             "invalid character",
		`{"version":2,"ask":"queue"}`:                     "version 2",
		`{"version":1,"ask":"all"}`:                       "number",
		`{"version":1,"start":1}`:                         "number",
		strings.Repeat(" ", MaxLine):                      "",
		good + "\n" + `{"event":"dance"}`:                 "has not begun",
		good + "\n" + `{"event":"sized"}`:                 "a job of 0 processes",
		good + "\n" + "\x00":                              "invalid character",
		good + "\n" + `{"event":"sized","size":2,"of":1}`: "2 processes, and it has 1",
	} {
		c, err := net.Dial("unix", address(name))
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(limit))
		if _, err := c.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
		in, last := scan(c), ""
		for in.Scan() {
			last = in.Text()
		}
		if !strings.Contains(last, want) || want != "" && !strings.Contains(last, "refused") {
			t.Errorf("%.40q is answered by %s, want %q", text, last, want)
		}
		c.Close()
		takes(t, name, 0, 0)
	}
}

const good = `{"version":1,"job":"0000000000000001","start":1}`

// The table that people see.
func TestQueueTable(t *testing.T) {
	q := &Queue{Name: "w", Manager: "easy", Total: 8, Taken: 6, Jobs: []Entry{
		{Job: number(1), Program: "a\x1b[2J b", PID: 7, Start: 4, Has: 4, Wants: 6, Follows: true, For: 90 * time.Second},
		{Job: number(2), PID: 8, Start: 2, Has: 2, Target: 1, Wants: 2}, {Job: number(3), Program: "c", PID: 9, Start: 5},
	}}
	const want = `head w: 6 of 8 slots are taken, easy decides
JOB               PROGRAM  PID  STATE    FOR     SLOTS  WANTS
0000000000000001  a[2Jb    7    follows  90.0 s  4      6
0000000000000002  -        8    to 1     0.0 s   2      -
0000000000000003  c        9    waits    0.0 s   0      5
`
	if got := q.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// isCut reports whether a job is cut off.
func (s *Server) isCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.job.cut {
			return true
		}
	}
	return false
}

// The slots of a job that is cut off are not given to another while its processes run:
// one that breaks the rules, and one that does not read what it is told.
func TestCutOff(t *testing.T) {
	for name, cut := range map[string]func(s *Server, c net.Conn){
		"rules": func(_ *Server, c net.Conn) {
			if _, err := c.Write([]byte("dance\n")); err != nil {
				t.Error(err)
			}
		},
		"deaf": func(s *Server, _ net.Conn) {
			for n := 0; n < 1000*maxUnread && !s.isCut(); n++ { // it is told of each
				s.Slots(2 + n%2)
			}
			s.Slots(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			head, s := listen(t, 2)
			c, err := net.Dial("unix", address(head))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			hello := (&line{Version: Version, Job: number(1), Program: "a", Start: 2}).encode()
			if _, err := c.Write(append(hello, (&line{Event: "sized", Size: 2, Of: 1}).encode()...)); err != nil {
				t.Fatal(err)
			}
			takes(t, head, 2, 1)
			cut(s, c)
			controltest.WaitFor(t, "the job cut off", s.isCut)
			b, _, err := Join(head, Wants{Job: number(2), Program: "b", Start: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			takes(t, head, 2, 2)
			select {
			case <-b.begins:
				t.Fatal("another job begins with slots of one that was cut off")
			default:
			}
			c.Close() // the last of its processes
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if n, err := b.Begin(ctx); n != 1 || err != nil {
				t.Fatalf("it begins with %d, %v", n, err)
			}
			takes(t, head, 1, 1)
		})
	}
}
