// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Where nobody looks on, a table is written once, with rates.
func TestTopTable(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job, pids, _ := startJob(t)
	for args, want := range map[string][]string{
		"":                     {"PROCESS ", "rank 0 ", "rank 1 ", " " + pids[0] + " ", " " + pids[1] + " ", "\n2 processes: CPU ", "sets: main (2)"},
		"--sort cpu":           {"rank 0 ", "rank 1 "},
		"--hosts --sort=ranks": {"HOST ", " 2 "},
		"--interval 250ms":     {"PROCESS ", "\n\njob " + job},
	} {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // ends that with an interval
		var text bytes.Buffer
		if err := run(ctx, append([]string{"top", job}, strings.Fields(args)...), terminal{out: &text}); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		cancel()
		for _, w := range want {
			if !strings.Contains(text.String(), w) {
				t.Errorf("%s: no %q in\n%s", args, w, text.String())
			}
		}
	}
}

// A signal ends what goes on at once also while the job does not answer, and is no
// failure; who has waited for the one table has none.
func TestTopEndsUnanswered(t *testing.T) {
	for where, backlog := range map[string]int{"for an answer": 8, "for room in the backlog": 0} {
		job := mute(t, backlog)
		for _, c := range []struct {
			how  string
			tty  terminal
			want error
		}{
			{"", terminal{screen: true}, nil},
			{"--json --interval 1s", terminal{}, nil},
			{"", terminal{}, context.Canceled},
			{"--json", terminal{screen: true}, context.Canceled},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			begun := time.Now()
			time.AfterFunc(50*time.Millisecond, cancel)
			var text bytes.Buffer
			c.tty.out = &text
			err := run(ctx, append([]string{"top", job}, strings.Fields(c.how)...), c.tty)
			if !errors.Is(err, c.want) || text.Len() > 0 {
				t.Errorf("waiting %s, top %s: %v, %q, want %v", where, c.how, err, text.String(), c.want)
			}
			if took := time.Since(begun); took > 5*time.Second { // half of what it would wait
				t.Errorf("waiting %s, top %s: ended after %v", where, c.how, took)
			}
		}
	}
}

// mute is a job that answers nobody; with a backlog of 0 there is no room to wait in.
func mute(t *testing.T, backlog int) (job string) {
	id := wire.JobID(uint64(os.Getpid())<<8 | 0x80 | uint64(backlog))
	addr := &unix.SockaddrUnix{Name: protocol.Address(id, 0)}
	open := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	fd := open()
	err := unix.Bind(fd, addr)
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	for err == nil && backlog == 0 {
		err = unix.Connect(open(), addr)
	}
	if err != nil && err != unix.EAGAIN {
		t.Fatal(err)
	}
	return fmt.Sprintf("%016x", uint64(id))
}

// lines is where a command writes to while a test reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

// With an interval there are lines until the job ends, which is no failure.
func TestTopJSON(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job, pids, stop := startJob(t)
	out := &lines{more: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"top", "--json", "--interval=250ms", job[:12]}, terminal{out: out, screen: true})
	}()
	select {
	case <-out.more:
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	kinds := map[string]int{}
	for l := range strings.Lines(out.text.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		kinds[fmt.Sprint(m["top"])]++
		cpu, _ := m["cpu"].(float64)
		memory, _ := m["memory_bytes"].(float64)
		if kinds["process"] <= 2 && (m["job"] != job || m["cpu"] == nil || cpu < 0 || memory < 1e6) {
			t.Errorf("line %s", l)
		}
		if r, is := m["rank"].(float64); is && kinds["process"] <= 2 && (m["state"] != "joined" || fmt.Sprint(m["pid"]) != pids[0] && fmt.Sprint(m["pid"]) != pids[1] || r > 1) {
			t.Errorf("line %s", l)
		}
	}
	if kinds["job"] < 1 || kinds["process"] < 2*kinds["job"] || len(kinds) != 2 {
		t.Errorf("lines of %v", kinds)
	}
}

func TestChangeLine(t *testing.T) {
	r := grown()
	asked := r.Op.Times.Asked.Format(time.TimeOnly)
	if got := changeLine(r); got != asked+" change 3: grow gompi://job/4: 4 -> 6 processes, done in 26.0 ms" {
		t.Error(got)
	}
	r.Op.State, r.Waits, r.For = change.Launching, "new.1 to join", time.Second
	if got := changeLine(r); got != asked+" change 3: grow gompi://job/4: 4 -> 6 processes, launching, waits for new.1 to join (1.0 s)" {
		t.Error(got)
	}
}
