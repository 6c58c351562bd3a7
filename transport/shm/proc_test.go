// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
)

// A test that needs a second process starts this binary again with roleEnv
// set; TestMain then plays the role instead of running tests.
const roleEnv = "GOMPI_SHM_TEST_ROLE"

var roles = map[string]func(*mini){
	"echo":  echo,
	"flood": flood,
	"pack":  pack,
	"bulks": bulks,
	"lies":  lies,
}

// The descriptors of a child: its own segment and bell, then its parent's.
const firstFD = 3

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "victim" {
		for {
			unix.Pause()
		}
	}
	role, ok := roles[os.Getenv(roleEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	tr, err := Open(transport.Env{Self: childID, Segment: firstFD, Bell: firstFD + 1, Setting: os.Getenv})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	slot, err := tr.Connect(wire.Contact{Proc: parentID, SameHost: true, PID: os.Getppid(), Segment: firstFD + 2, Bell: firstFD + 3})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	role(&mini{tr: tr, slot: slot})
	tr.Close()
	os.Exit(0)
}

var (
	parentID = wire.ProcID{Job: 1, Serial: 1}
	childID  = wire.ProcID{Job: 1, Serial: 2}
)

// mini is the least engine that can talk to one peer.
type mini struct {
	tr    *Transport
	slot  transport.Slot
	ev    [16]transport.Event
	n, at int
	desc  [transport.MaxDesc]byte
}

// next waits for the next event, spinning a little and then yielding.
func (m *mini) next() *transport.Event {
	for turn := 0; m.at == m.n; turn++ {
		m.at, m.n = 0, m.tr.Poll(m.ev[:])
		if turn&1023 == 1023 {
			unix.RawSyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0)
			if turn&(1<<14-1) == 1<<14-1 {
				runtime.Gosched()
			}
		}
	}
	m.at++
	return &m.ev[m.at-1]
}

// send waits for room, ignoring what arrives meanwhile. It returns false when
// the peer is gone.
func (m *mini) send(h wire.Header, p []byte) bool {
	for {
		switch m.tr.Send(m.slot, &h, p, 0) {
		case transport.Sent:
			return true
		case transport.Broken:
			return false
		}
		m.next()
	}
}

// Headers of mini's messages.
const (
	miniData = iota
	miniOffer
)

// offer starts a large transfer to the peer.
func (m *mini) offer(buf []byte) bool {
	n, err := m.tr.Offer(m.slot, buf, 1, m.desc[:])
	return err == nil && m.send(wire.Header{miniOffer}, m.desc[:n])
}

// echo sends everything back, until the peer goes.
func echo(m *mini) {
	var back []byte
	big := make([]byte, 16<<20)
	for {
		e := m.next()
		switch e.Kind {
		case transport.EvDown:
			return
		case transport.EvRecv:
			if e.Header[0] == miniOffer {
				if err := m.tr.Accept(m.slot, e.Payload, big, 2); err != nil {
					panic(err)
				}
				continue
			}
			if len(e.Payload) <= inlineMax {
				m.send(e.Header, e.Payload)
				continue
			}
			back = append(back[:0], e.Payload...)
			m.send(e.Header, back)
		case transport.EvBulk:
			if e.Token == 2 && e.Err == nil {
				m.offer(big[:e.Bytes])
			}
		}
	}
}

// child is a second process, and the mini engine of this one.
type child struct {
	mini
	cmd *exec.Cmd
	fds []int
}

// start runs a role in a process of its own and connects to it.
func start(t testing.TB, role string, env ...string) *child {
	t.Helper()
	c := &child{}
	for _, owner := range []wire.ProcID{parentID, childID} {
		seg, bell, err := segment.Create()
		if err != nil {
			t.Fatal(err)
		}
		if err := segment.SetOwner(seg, owner); err != nil {
			t.Fatal(err)
		}
		c.fds = append(c.fds, seg, bell)
	}
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), append(env, roleEnv+"="+role)...)
	c.cmd.Stderr = os.Stderr
	// Nobody spins on when the test has been killed.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	for _, i := range []int{2, 3, 0, 1} {
		f := os.NewFile(uintptr(dup(c.fds[i])), "shared")
		c.cmd.ExtraFiles = append(c.cmd.ExtraFiles, f)
		defer f.Close()
	}
	runtime.LockOSThread() // Pdeathsig means the thread that forks
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill() })
	settings := make(map[string]string)
	for _, e := range env {
		for k := range e {
			if e[k] == '=' {
				settings[e[:k]] = e[k+1:]
				break
			}
		}
	}
	var err error
	c.tr, err = Open(transport.Env{Self: parentID, Segment: c.fds[0], Bell: c.fds[1], Setting: func(k string) string { return settings[k] }})
	if err != nil {
		t.Fatal(err)
	}
	c.slot, err = c.tr.Connect(wire.Contact{Proc: childID, SameHost: true, PID: c.cmd.Process.Pid, Segment: dup(c.fds[2]), Bell: dup(c.fds[3])})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stop closes our side, after which the child ends by itself.
func (c *child) stop(t testing.TB) {
	t.Helper()
	if err := c.tr.Close(); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error("child:", err)
	}
	c.closeFDs()
}

func (c *child) closeFDs() {
	for _, fd := range c.fds {
		unix.Close(fd)
	}
}
