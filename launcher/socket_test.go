// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/internal/control/head"
)

// A program comes, is told all, decides, goes, and another one comes; who does not know
// the secret, or comes second, is turned away; nothing is left.
func TestOffice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job")
	s, err := newExternalDriver(path, 0x4f1c, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newExternalDriver(path, 1, 0); err == nil || !strings.Contains(err.Error(), "another gompirun") {
		t.Errorf("two at one path: %v", err)
	}
	for _, name := range []string{path, path + secretEnd} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	p := &told{s: s, done: make(chan struct{}), sizes: make(chan int, 10)}
	go s.run(p)
	p.becomes(head.Use{Has: 2})

	secret, err := os.ReadFile(path + secretEnd)
	if err != nil {
		t.Fatal(err)
	}
	hello := `{"version":1,"secret":"` + strings.TrimSpace(string(secret)) + `"}`
	type program struct {
		net.Conn
		in *bufio.Reader
	}
	come := func(first string) *program {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Write([]byte(first + "\n")); err != nil {
			t.Fatal(err)
		}
		return &program{c, bufio.NewReader(c)}
	}
	hear := func(p *program, want string) {
		t.Helper()
		if got, err := p.in.ReadString('\n'); err != nil || !strings.Contains(got, want) {
			t.Errorf("told %q, %v, want %q", got, err, want)
		}
	}
	hear(come(`{"version":1,"secret":"x"}`), "another secret")
	hear(come("\x00"), "refused")
	a := come(hello)
	hear(a, `"hello","version":1,"head":"0000000000004f1c"`)
	hear(a, `"total":8`)
	hear(a, `"arrived","job":1,"size":2`)
	hear(come(hello), "another manager")
	for line, want := range map[string]string{`{"job":1,"size":4}`: `"sized","job":1,"size":4`, `{"job":1,"size":9}`: "9 of 8 slots"} {
		if _, err := a.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		hear(a, want)
	}
	a.Close()
	var b *program
	for b == nil {
		if c := come(hello); true {
			if got, _ := c.in.ReadString('\n'); strings.Contains(got, "hello") {
				b = c
			} else if !strings.Contains(got, "another manager") { // the first one is still there
				t.Fatalf("told %q", got)
			}
		}
	}
	hear(b, `"total":8`)
	hear(b, `"arrived","job":1,"size":4`)
	close(p.done)
	s.wait()
	if _, err := b.in.ReadByte(); err == nil {
		t.Error("it is told more when the job is over")
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	// What a gompirun that was killed has left is no hindrance.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if err := os.WriteFile(path+secretEnd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = newExternalDriver(path, 1, 0); err != nil {
		t.Fatal(err)
	}
	s.close()
	// A file that is none of ours stays.
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newExternalDriver(path, 1, 0); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file is taken for a socket: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}
