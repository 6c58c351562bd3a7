// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/retry"
	"gompi/internal/base/wire"
	"gompi/transport"
)

// Name is what the transport is called in settings.
const Name = "tcp"

// eagerBest: docs/design/003-tcp.md has the measurement.
const eagerBest = 64 << 10

// Transport is one process's TCP. It implements transport.Transport and has,
// like that, one caller at a time; it has no goroutine.
type Transport struct {
	env   transport.Env
	opt   Options
	addrs []string

	epfd, timer int
	listeners   []int

	peers     []*peer // by slot; nil if free
	freeSlots []transport.Slot
	byProc    map[wire.ProcID]*peer // also those that are down, until Release

	links     []*link // by what epoll tells; nil if free
	freeLinks []int32
	linkGen   int32
	unproven  int // links that have not proven who they are
	up        int // links that carry frames
	lingering int // links that are released and not closed
	blocked   int // links that wait for EPOLLOUT

	start   time.Time
	timerAt time.Duration // what the timer is set to; 0 is off

	// The Poll under way, and what is left for the next.
	events  []transport.Event
	emitted int
	pending []transport.Event
	ready   []*link // links that want a turn in the next Poll
	serving []*link // ready of the Poll under way
	failing []*peer
	redials []*peer // that are dialled again when the timer says so
	turn    uint64

	direct  *link // the only busy link: polled without asking epoll
	idle    int   // how often it had nothing
	last    *link // the link of the last input that epoll told
	askNext bool  // ask epoll in the next Poll in any case
	reopen  bool  // listeners are off

	scratch [msgHead + copyMax]byte
	blocks  [][]byte // free, as are the next two
	freeOut []*bulkOut
	freeIn  []*bulkIn
	vec     vector
	splicer splicer
	epoll   [64]unix.EpollEvent
}

var _ transport.Transport = (*Transport)(nil)

// Open makes a transport that listens. The caller owns it and ends it with
// Close.
func Open(env transport.Env, opt Options) (*Transport, error) {
	if err := opt.complete(env.Setting); err != nil {
		return nil, err
	}
	if env.Self.IsZero() {
		return nil, errors.New("tcp: a process without id")
	}
	t := &Transport{
		env: env, opt: opt, epfd: -1, timer: -1,
		byProc: make(map[wire.ProcID]*peer), start: time.Now(), askNext: true,
	}
	if err := t.open(); err != nil {
		t.closeAll()
		return nil, err
	}
	return t, nil
}

func (t *Transport) open() (err error) {
	if t.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("tcp: epoll_create: %w", err)
	}
	if t.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("tcp: timerfd_create: %w", err)
	}
	if err = t.watch(t.timer, tagTimer); err != nil {
		return err
	}
	if len(t.opt.Listen) == 0 {
		err = t.listen("127.0.0.1:0")
		if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT) {
			err = t.listen("[::1]:0")
		}
		return err
	}
	for _, addr := range t.opt.Listen {
		if err := t.listen(addr); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transport) listen(addr string) error {
	fd, bound, err := listen(addr)
	if err != nil {
		return err
	}
	t.listeners = append(t.listeners, fd)
	t.addrs = append(t.addrs, bound)
	return t.watch(fd, tagListener-int32(len(t.listeners)-1))
}

// watch adds a descriptor that is not a link to epoll.
func (t *Transport) watch(fd int, tag int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: tag}
	if err := unix.EpollCtl(t.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("tcp: epoll: %w", err)
	}
	return nil
}

// Addrs are the addresses to announce, best first.
func (t *Transport) Addrs() []string { return append([]string(nil), t.addrs...) }

// Caps implements transport.Transport.
func (t *Transport) Caps() transport.Caps {
	return transport.Caps{Name: Name, EagerMax: t.opt.EagerMax, EagerBest: min(eagerBest, t.opt.EagerMax), SpinEvery: spinEvery}
}

// Connect implements transport.Transport. Nothing is dialled if the peer's
// own connection is here already.
func (t *Transport) Connect(c wire.Contact) (transport.Slot, error) {
	if c.SameHost {
		for _, fd := range []int{c.Segment, c.Bell} {
			if fd >= 0 {
				unix.Close(fd)
			}
		}
	}
	if c.Proc == t.env.Self {
		return 0, fmt.Errorf("tcp: a connection of %v to itself: %w", c.Proc, transport.ErrUnavailable)
	}
	if p := t.byProc[c.Proc]; p != nil {
		if p.state == peerDown {
			return 0, fmt.Errorf("tcp: process %v: slot %d is down and not released: %w", c.Proc, p.slot, transport.ErrPeerGone)
		}
		t.forgetUp(p.slot)
		return p.slot, nil
	}
	if len(c.Addrs) == 0 {
		return 0, fmt.Errorf("tcp: process %v has no address: %w", c.Proc, transport.ErrUnreachable)
	}
	p := t.newPeer(c.Proc)
	p.addrs = append([]string(nil), c.Addrs...)
	t.dialNext(p)
	if p.state == peerDown {
		switch {
		case retry.OutOfFiles(p.dialErr):
			t.Release(p.slot)
			return 0, fmt.Errorf("tcp: this process can open no more files (ulimit -n): %w", p.dialErr)
		case retry.OutOfMemory(p.dialErr):
			t.Release(p.slot)
			return 0, fmt.Errorf("tcp: no memory for a connection: %w", p.dialErr)
		}
	}
	return p.slot, nil
}

// forgetUp drops an EvUp that has not been told: the engine has connected.
func (t *Transport) forgetUp(s transport.Slot) {
	for i, e := range t.pending {
		if e.Slot == s && e.Kind == transport.EvUp {
			t.pending = append(t.pending[:i], t.pending[i+1:]...)
			return
		}
	}
}

// FD implements transport.Transport: the epoll descriptor of all sockets.
func (t *Transport) FD() int { return t.epfd }

// Arm implements transport.Transport. Sockets and deadlines are always in
// the epoll descriptor; what is left is what lies in memory.
func (t *Transport) Arm() bool {
	t.askNext = true
	t.stopDirect()
	return len(t.pending) == 0 && len(t.ready) == 0 && len(t.failing) == 0
}

// Disarm implements transport.Transport.
func (t *Transport) Disarm() { t.askNext = true }

// Flushed implements transport.Transport. The kernel has everything; Close
// sees to it that nothing overtakes it.
func (t *Transport) Flushed() bool {
	for _, p := range t.peers {
		if p != nil && (!p.out.empty() || len(p.sending) > 0) {
			return false
		}
	}
	for _, l := range t.links {
		if l != nil && l.state == linkLingering && !l.shut {
			return false
		}
	}
	return true
}

// Taken implements transport.Keeper: the kernels of the peers have everything. What
// an ending process has not read resets its connections, and what is still on its way
// would be lost.
func (t *Transport) Drained() bool {
	for _, l := range t.links {
		if l == nil || l.state != linkUp && l.state != linkLingering {
			continue
		}
		if n, err := unix.IoctlGetInt(l.fd, unix.SIOCOUTQ); err == nil && n > 0 {
			return false
		}
	}
	return true
}

// Close implements transport.Transport. It waits at most LingerTimeout for
// the peers to take what was sent and to end their side.
func (t *Transport) Close() error {
	end := time.Since(t.start) + t.opt.LingerTimeout
	t.closeListeners()
	var sink [64]transport.Event
	for {
		waiting := false
		for _, p := range t.peers {
			switch {
			case p == nil:
			case p.state == peerDialing && !p.out.empty() && !p.failing:
				waiting = true // messages may precede the connection
			default:
				t.Release(p.slot)
			}
		}
		left := end - time.Since(t.start)
		if !waiting && t.lingering == 0 || left <= 0 {
			break
		}
		if len(t.pending) == 0 && len(t.ready) == 0 {
			fds := [1]unix.PollFd{{Fd: int32(t.epfd), Events: unix.POLLIN}}
			unix.Poll(fds[:], int(left/time.Millisecond)+1)
		}
		t.askNext = true
		t.Poll(sink[:])
	}
	t.closeAll()
	return nil
}

func (t *Transport) closeListeners() {
	for _, fd := range t.listeners {
		unix.Close(fd)
	}
	t.listeners = nil
}

// closeAll frees every descriptor.
func (t *Transport) closeAll() {
	t.closeListeners()
	for _, l := range t.links {
		if l != nil {
			t.closeLink(l)
		}
	}
	t.splicer.close()
	for _, fd := range []int{t.timer, t.epfd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
