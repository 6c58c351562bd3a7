// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// pipePump is a pump with n sources; out is where it writes.
func pipePump(t *testing.T, n int, tag bool) (p *pump, ends []*os.File, srcs []*source, out *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err = newPump(outlet{fd: int(w.Fd())}, func(string, error) { t.Error("the output broke") })
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		unix.SetNonblock(fds[0], true)
		name := ""
		if tag {
			name = fmt.Sprintf("[%d] ", i)
		}
		s, err := p.add(fds[0], name, nil)
		if err != nil {
			t.Fatal(err)
		}
		srcs, ends = append(srcs, s), append(ends, os.NewFile(uintptr(fds[1]), "w"))
	}
	t.Cleanup(func() { r.Close() })
	go func() { <-p.done; w.Close() }()
	return p, ends, srcs, r
}

func TestPumpMergesLines(t *testing.T) {
	p, ends, _, out := pipePump(t, 4, false)
	const n = 5000
	for i, e := range ends {
		go func() {
			defer e.Close()
			var b bytes.Buffer
			for k := range n {
				fmt.Fprintf(&b, "%d %d %s\n", i, k, strings.Repeat("x", k%300))
				if k%7 == 0 { // an uneven cut
					e.Write(b.Next(b.Len() - 3))
				}
			}
			e.Write(b.Bytes())
		}()
	}
	p.close()
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	var next [4]int
	for line := range strings.Lines(string(text)) {
		var i, k int
		if _, err := fmt.Sscan(line, &i, &k); err != nil || i > 3 || k != next[i] || len(line) != len(fmt.Sprintf("%d %d \n", i, k))+k%300 {
			t.Fatalf("line %q, expected number %v", line, next)
		}
		next[i]++
	}
	if next != [4]int{n, n, n, n} {
		t.Errorf("lines of each: %v", next)
	}
}

// A prompt comes out although its line has no end; meanwhile others are kept
// waiting, but not for ever.
func TestPumpPromptAndImpatience(t *testing.T) {
	p, ends, _, out := pipePump(t, 2, true)
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
	io.WriteString(ends[0], "name? ")
	read("[0] name? ")
	io.WriteString(ends[1], "hello\n")
	read("\n[1] hello\n")
	io.WriteString(ends[0], "Ann\n")
	read("[0] Ann\n")
	ends[0].Close()
	ends[1].Close()
	p.close()
	<-p.done
}

// finish ends a stream although a stranger holds the pipe's write end.
func TestPumpFinishDoesNotWait(t *testing.T) {
	p, ends, srcs, out := pipePump(t, 2, false)
	big := strings.Repeat("y", 50000)
	var text []byte
	var wg sync.WaitGroup
	wg.Go(func() { text, _ = io.ReadAll(out) })
	for i, e := range ends {
		io.WriteString(e, big+"\nend"+fmt.Sprint(i))
		p.finish(srcs[i])
	}
	if !p.say("gompirun: done\n") {
		t.Error("the pump does not take a line")
	}
	p.close()
	<-p.done
	wg.Wait()
	want := len(big+"\nend0")*2 + len("gompirun: done\n")
	if len(text) != want || !strings.HasSuffix(string(text), "gompirun: done\n") {
		t.Errorf("%d bytes, want %d; end %q", len(text), want, text[max(0, len(text)-60):])
	}
	for _, e := range ends {
		e.Close()
	}
}

// A stranger who goes on writing is not listened to after finish, however slow
// the reader of the output is.
func TestPumpFinishEndsAStranger(t *testing.T) {
	p, ends, srcs, out := pipePump(t, 1, false)
	var stranger sync.WaitGroup
	stranger.Go(func() {
		defer ends[0].Close()
		spam := bytes.Repeat([]byte("spam\n"), 1<<10)
		for {
			if _, err := ends[0].Write(spam); err != nil {
				return // the pump has closed its end
			}
		}
	})
	const most = 1 << 20
	full := func(fd int) bool {
		n, _ := unix.IoctlGetInt(fd, unix.TIOCINQ)
		return n > 50<<10
	}
	for !full(srcs[0].fd) || !full(int(out.Fd())) {
		runtime.Gosched()
	}
	p.finish(srcs[0])
	p.close()
	total := 0
	for buf := make([]byte, 16); ; {
		n, err := out.Read(buf)
		if err != nil {
			break
		}
		if total += n; total > most {
			t.Fatal("the stranger keeps the pump")
		}
	}
	stranger.Wait()
}

func TestPumpTellsOfABrokenOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	broken := make(chan error, 2)
	p, err := newPump(outlet{fd: int(w.Fd())}, func(_ string, err error) { broken <- err })
	if err != nil {
		t.Fatal(err)
	}
	var fds [2]int
	unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
	p.add(fds[0], "", nil)
	unix.Write(fds[1], []byte("a line\n"))
	if err := <-broken; err != unix.EPIPE {
		t.Errorf("error %v, want EPIPE", err)
	}
	// What follows is dropped, and nobody blocks.
	e := os.NewFile(uintptr(fds[1]), "w")
	if _, err := e.Write(bytes.Repeat([]byte("more\n"), 1<<17)); err != nil {
		t.Error(err)
	}
	e.Close()
	p.close()
	<-p.done
	w.Close()
}

func TestFeederDropsWhoDoesNotRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f := newFeeder(r)
	var ends []*os.File
	for range 2 {
		fd, err := f.pipe()
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, os.NewFile(uintptr(fd), "r"))
	}
	ends[0].Close()
	text := bytes.Repeat([]byte("0123456789"), 100000)
	go func() { w.Write(text); w.Close() }()
	done := make(chan struct{})
	go func() { f.run(); close(done) }()
	got, err := io.ReadAll(ends[1])
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
	}
	<-done
}
