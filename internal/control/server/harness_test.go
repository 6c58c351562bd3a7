// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
)

// rig is a server whose processes are values in the test. In TestAcross... it is a head, and host is an agent at the other end of a socket.
type rig struct {
	*Server
	host  *Server
	links []*link.Link // of head and agent, if there is a socket
	t     *testing.T
	procs []protocol.StartProc
	world wire.Set

	mu     sync.Mutex
	log    []string // callbacks, as "reap 3"
	spawns [][]protocol.StartProc
	watch  bool // who joins watches the world

	holdSpawns chan struct{} // nil: they are not held
}

// newRig starts a server with n reserved processes. At the test's end nothing
// may be left of it.
func newRig(t *testing.T, n int, change func(*Config)) *rig {
	t.Helper()
	before := controltest.Leftovers()
	r := &rig{t: t}
	note := func(what string) func(wire.ProcID) {
		return func(p wire.ProcID) { r.note(fmt.Sprint(what, " ", p.Serial)) }
	}
	cfg := Config{
		JobConfig: JobConfig{
			Job: wire.JobID(rand.Uint64() | 1), Secret: [32]byte{1, 2, 3},
			Settings: map[string]string{"GOMPI_A": "1", "GOMPI_B": ""}, KillGrace: 2 * time.Second, UsableCPUs: 2,
			MaxProcs:  func(local int) int { return max(2, 8/local) },
			Aborted:   func(by wire.ProcID, code int, msg string) { r.note(fmt.Sprint("abort ", by.Serial, code, msg)) },
			Joined:    note("joined"),
			Finalized: note("finalized"),
		},
		HostConfig: HostConfig{
			Reap:    note("reap"),
			Dropped: func(p wire.ProcID, why string) { r.note(fmt.Sprint("dropped ", p.Serial, " ", why)) },
		},
		HostLost: func(host uint32, why string) { r.note(fmt.Sprint("host lost ", host, " ", why)) },
		Start: func(procs []protocol.StartProc) error {
			if r.holdSpawns != nil {
				<-r.holdSpawns
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.spawns = append(r.spawns, procs)
			return nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	err := r.open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		controltest.WaitFor(t, fmt.Sprintf("nothing left beyond %+v", before), func() bool { return controltest.Leftovers().Within(before) })
	})
	argv := make([][]string, n)
	for i := range argv {
		argv[i] = []string{"prog", fmt.Sprint(i)}
	}
	if r.procs, r.world, err = r.AddJob(argv); err != nil {
		t.Fatal(err)
	}
	return r
}

// open makes head and agent.
func (r *rig) open(cfg Config) (err error) {
	if !strings.HasPrefix(r.t.Name(), "TestAcross") {
		if r.Server, err = NewServer(cfg); err == nil {
			r.host = r.Server
			r.Server.mu.Lock()
			r.across = controltest.OverWire // head and agent share nothing
			r.Server.mu.Unlock()
		}
		return err
	}
	for _, conn := range sockets(r.t) {
		r.links = append(r.links, link.New(conn))
	}
	if start := cfg.Start; start != nil {
		cfg.Start = func(procs []protocol.StartProc) error { // the agent knows them
			r.passed()
			return start(procs)
		}
	}
	if r.Server, err = NewHead(cfg, []*link.Link{r.links[0]}); err != nil {
		return err
	}
	if r.host, err = NewAgent(cfg.Job, 0, cfg.HostConfig, r.links[1]); err != nil {
		return err
	}
	for _, l := range r.links {
		l.Run()
	}
	return nil
}

// sockets are the two ends of a connection.
func sockets(t *testing.T) (ends [2]net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "link")
		ends[i], err = net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

// Close ends head and agent, as gompirun does: the agent first.
func (r *rig) Close() error {
	if r.links != nil {
		r.host.Close()
		r.links[1].Close()
		r.links[0].Close()
	}
	return r.Server.Close()
}

// What an agent does. Afterwards the head knows, and the agent what followed.

func (r *rig) Addr() string               { return r.host.Addr() }
func (r *rig) Token(p wire.ProcID) string { return r.host.Token(p) }

func (r *rig) Started(p wire.ProcID, pid int) {
	r.host.Started(p, pid)
	r.passed()
}

func (r *rig) Exited(p wire.ProcID, how string, clean bool) {
	r.host.Exited(p, how, clean)
	r.passed()
}

func (r *rig) Lost(p wire.ProcID, how string) {
	r.host.Lost(p, how)
	r.passed()
}

// What is the head's, and the agent has heard of it.

func (r *rig) AddJob(argv [][]string) ([]protocol.StartProc, wire.Set, error) {
	defer r.passed()
	return r.Server.AddJob(argv)
}

func (r *rig) Ending(why string) {
	r.Server.Ending(why)
	r.passed()
}

// passed waits until what was told before has been told, both ways, and what
// follows from that.
func (r *rig) passed() {
	if r.links == nil {
		return
	}
	for range 2 {
		var qs []*callsOf
		r.Server.step(func() { qs = r.askCalls() })
		for _, q := range qs {
			<-q.done
		}
	}
}

func (r *rig) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, s)
}

func (r *rig) noted(s string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.log {
		if strings.HasPrefix(l, s) {
			return true
		}
	}
	return false
}

// await waits until a callback was noted.
func (r *rig) await(s string) {
	r.t.Helper()
	controltest.WaitFor(r.t, s, func() bool { return r.noted(s) })
}

// spawned is what the i-th call of Start was given.
func (r *rig) spawned(i int) []protocol.StartProc {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spawns[i]
}

// child is one process of a rig.
type child struct {
	*client.Client
	w  *protocol.Welcome
	t  *testing.T
	id wire.ProcID
}

// join lets process i of the first world say hello, as the launcher's child
// does, and announce itself.
func (r *rig) join(i int) *child {
	r.t.Helper()
	return r.joinAs(r.procs[i], os.Getpid())
}

func (r *rig) joinAs(p protocol.StartProc, pid int) *child {
	r.t.Helper()
	r.Started(p.Proc, pid)
	c, w, err := client.Dial(r.Addr(), r.Token(p.Proc))
	if err != nil {
		r.t.Fatal(err)
	}
	unix.Close(w.Segment)
	unix.Close(w.Bell)
	r.t.Cleanup(func() { c.Close() })
	k := &child{Client: c, w: w, t: r.t, id: p.Proc}
	if r.watch {
		k.must(c.Watch(r.world.Members))
	}
	k.must(c.Announce([]string{fmt.Sprintf("127.0.0.1:%d", p.Proc.Serial)}))
	return k
}

func (r *rig) joinAll() []*child {
	r.t.Helper()
	list := make([]*child, len(r.procs))
	for i := range list {
		list[i] = r.join(i)
	}
	return list
}

func (k *child) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("process %d: %v", k.id.Serial, err)
	}
}

// next returns the next event that is no EvHost.
func (k *child) next() protocol.Event {
	k.t.Helper()
	for {
		got := make(chan protocol.Event, 1)
		fail := make(chan error, 1)
		go func() {
			ev, err := k.Next()
			if err != nil {
				fail <- err
				return
			}
			got <- ev
		}()
		select {
		case ev := <-got:
			if ev.Kind != protocol.EvHost {
				return ev
			}
		case err := <-fail:
			k.t.Fatalf("process %d: %v", k.id.Serial, err)
		case <-time.After(controltest.Limit):
			k.t.Fatalf("process %d: no event", k.id.Serial)
		}
	}
}

func (k *child) expect(kind protocol.EventKind, p wire.ProcID) protocol.Event {
	k.t.Helper()
	ev := k.next()
	if ev.Kind != kind || ev.Proc != p {
		k.t.Fatalf("process %d: event %+v; want kind %d of %v", k.id.Serial, ev, kind, p)
	}
	return ev
}

// settle makes sure that the server has handled all that k told before.
func (k *child) settle() {
	k.t.Helper()
	if _, err := k.Lookup(protocol.SelfURI); err != nil {
		k.t.Fatal(err)
	}
}

// meet makes k know the pid of p.
func (k *child) meet(p wire.ProcID) wire.Contact {
	k.t.Helper()
	c, err := k.Contact(p)
	k.must(err)
	unix.Close(c.Segment)
	unix.Close(c.Bell)
	return c
}

// hasFiles tells whether the agent keeps the segment of a process.
func (r *rig) hasFiles(p wire.ProcID) bool {
	r.host.mu.Lock()
	held := r.host.agent.Hold([]uint32{p.Serial})
	r.host.mu.Unlock()
	held[0].Look()
	return held[0].HasFiles()
}

// sizes is how much each table of head and agent holds.
func (r *rig) sizes() map[string]int {
	r.Server.mu.Lock()
	m := r.head.Sizes()
	m["asked"] = len(r.down.asked) + len(r.down.tools)
	r.Server.mu.Unlock()
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	maps.Copy(m, r.host.agent.Sizes())
	maps.Copy(m, r.host.ln.Sizes())
	return m
}

// reach waits until a table has that size.
func (r *rig) reach(what string, n int) {
	r.t.Helper()
	controltest.WaitFor(r.t, fmt.Sprint(n, " ", what), func() bool { return r.sizes()[what] == n })
}

// parked waits until n requests wait in the head.
func (r *rig) parked(n int) {
	r.t.Helper()
	r.reach("requests", n)
}

var bg = context.Background()

// readFrame reads a frame from a connection that speaks bytes. Descriptors that
// come with it are lost.
func readFrame(c *net.UnixConn) (protocol.Frame, error) {
	var head [protocol.FrameHead]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return protocol.Frame{}, err
	}
	f, n, err := protocol.ParseHead(head[:])
	if err != nil {
		return protocol.Frame{}, err
	}
	f.Body = make([]byte, n)
	_, err = io.ReadFull(c, f.Body)
	return f, err
}
