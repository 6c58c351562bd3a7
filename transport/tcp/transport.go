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

// Name is the name of the transport in settings.
const Name = "tcp"

// eagerBest is explained with its measurement in docs/design/003-tcp.md.
const eagerBest = 64 << 10

// Transport is the TCP transport of one process. Like every transport.Transport it has one caller
// at a time. It has no goroutine.
type Transport struct {
	env   transport.Env
	opt   Options
	addrs []string

	epfd, timer int
	listeners   []int

	peers     []*peer // by slot; nil if free
	freeSlots []transport.Slot
	byProc    map[wire.ProcID]*peer // includes peers that are down, until Release

	links     []*link // by the index in epoll's data; nil if free
	freeLinks []int32
	linkGen   int32
	unproven  int // links whose process is not authenticated
	up        int // links that carry frames
	lingering int // links that are released and not closed
	blocked   int // links that wait for EPOLLOUT

	start   time.Time
	timerAt time.Duration // expiry of the timer; 0: off

	// The running Poll, and what is left for the next one.
	events  []transport.Event
	emitted int
	pending []transport.Event
	ready   []*link // links that want a turn in the next Poll
	serving []*link // ready links of the running Poll
	failing []*peer
	redials []*peer // peers to dial again when the timer expires
	turn    uint64

	direct  *link // the only busy link: it is read without asking epoll
	idle    int   // number of times that it had no input
	last    *link // link of the last input that epoll reported
	askNext bool  // ask epoll in the next Poll in any case
	reopen  bool  // the listeners are switched off

	scratch [msgHead + copyMax]byte
	blocks  [][]byte // free list; the next two are free lists, too
	freeOut []*bulkOut
	freeIn  []*bulkIn
	vec     vector
	splicer splicer
	epoll   [64]unix.EpollEvent
}

var _ transport.Transport = (*Transport)(nil)

// Open returns a transport that listens. The caller owns it and must Close it.
func Open(env transport.Env, opt Options) (*Transport, error) {
	if err := opt.complete(env.Setting); err != nil {
		return nil, err
	}
	if env.Self.IsZero() {
		return nil, errors.New("tcp: a process without id")
	}
	t := &Transport{
		env:     env,
		opt:     opt,
		epfd:    -1,
		timer:   -1,
		byProc:  make(map[wire.ProcID]*peer),
		start:   time.Now(),
		askNext: true,
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

// Addrs returns the addresses to announce, the best first.
func (t *Transport) Addrs() []string { return append([]string(nil), t.addrs...) }

// Caps implements transport.Transport.
func (t *Transport) Caps() transport.Caps {
	return transport.Caps{Name: Name, EagerMax: t.opt.EagerMax, EagerBest: min(eagerBest, t.opt.EagerMax), SpinEvery: spinEvery}
}

// Connect implements transport.Transport. It does not dial if the peer has connected already.
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

// forgetUp drops a pending EvUp, because the engine has called Connect.
func (t *Transport) forgetUp(s transport.Slot) {
	for i, e := range t.pending {
		if e.Slot == s && e.Kind == transport.EvUp {
			t.pending = append(t.pending[:i], t.pending[i+1:]...)
			return
		}
	}
}

// FD implements transport.Transport. It is the epoll descriptor of all sockets.
func (t *Transport) FD() int { return t.epfd }

// Arm implements transport.Transport. Sockets and deadlines are always in the epoll descriptor, so
// only work in memory needs a check.
func (t *Transport) Arm() bool {
	t.askNext = true
	t.stopDirect()
	return len(t.pending) == 0 && len(t.ready) == 0 && len(t.failing) == 0
}

// Disarm implements transport.Transport.
func (t *Transport) Disarm() { t.askNext = true }

// Flushed implements transport.Transport. The kernel has all output; Close makes sure that nothing
// overtakes it.
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

// Drained implements transport.Drainer: the kernels of the peers have all output. An ending process
// with unread input resets its connections, and output on its way would be lost.
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

// Close implements transport.Transport. It waits at most LingerTimeout for the peers to take all
// output and to end their side.
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

// closeAll closes every descriptor.
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
