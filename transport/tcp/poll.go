// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"time"

	"golang.org/x/sys/unix"

	"gompi/transport"
)

const (
	// askInterval is the number of Polls from one question to epoll to the next, while a link
	// is read directly or there is no link.
	askInterval = 16
	// directIdle is the number of times that the direct link may have no input. After that,
	// asking epoll costs less than reading the link.
	directIdle = 4096
	// spinEvery is large because a read without input takes 300 to 490 ns. For half of that it
	// holds a lock that the sender of data must wait for.
	spinEvery = 40

	// Tags in epoll's data for descriptors that are not links.
	tagTimer    = -1
	tagListener = -2 // and below
)

// Poll implements transport.Transport.
func (t *Transport) Poll(ev []transport.Event) int {
	if len(ev) == 0 {
		return 0
	}
	t.turn++
	t.events = ev
	t.emitted = 0
	if len(t.pending) > 0 {
		t.emitted = copy(ev, t.pending)
		rest := copy(t.pending, t.pending[t.emitted:])
		clear(t.pending[rest:])
		t.pending = t.pending[:rest]
	}
	if t.room() {
		t.progress()
	}
	t.events = nil
	return t.emitted
}

// progress collects events until Poll takes no more.
func (t *Transport) progress() {
	if len(t.failing) > 0 {
		t.startFailing()
	}
	if len(t.ready) > 0 {
		t.ready, t.serving = t.serving[:0], t.ready
		for i, l := range t.serving {
			t.serving[i] = nil
			l.queued = false
			t.serve(l, unix.EPOLLIN|unix.EPOLLOUT)
		}
	}
	if t.askNext {
		t.stopDirect()
	}
	l := t.direct
	if l != nil && !l.queued { // a queued link has had its turn
		t.readDirect(l)
	}
	if !t.askNext && t.blocked == 0 && t.turn%askInterval != 0 && (l != nil || t.up == 0) {
		return
	}
	t.askNext = false
	t.askEpoll()
}

// readDirect reads the direct link.
func (t *Transport) readDirect(l *link) {
	had := l.peer.taken
	t.read(l)
	if l.state != linkUp || l.peer.taken != had {
		t.idle = 0
	} else if t.idle++; t.idle > directIdle {
		t.stopDirect()
	}
}

// startDirect makes l the direct link, which is read without asking epoll. Meanwhile epoll does
// not report its input: each message would wake the processes that watch the epoll descriptor.
func (t *Transport) startDirect(l *link) {
	t.direct, t.idle = l, 0
	t.setInterest(l, l.interest&^unix.EPOLLIN)
}

// stopDirect ends that: epoll reports all input again.
func (t *Transport) stopDirect() {
	l := t.direct
	t.direct, t.last = nil, nil
	if l != nil && l.state != linkClosed {
		t.setInterest(l, l.interest|unix.EPOLLIN)
	}
}

// askEpoll serves what epoll reports. epoll is level-triggered, so it reports again what finds no
// room now.
func (t *Transport) askEpoll() {
	n := epollNow(t.epfd, t.epoll[:])
	var busy *link
	several := false
	for i := range t.epoll[:n] {
		e := &t.epoll[i]
		if e.Fd <= tagListener {
			t.acceptAll(int(tagListener - e.Fd))
			continue
		}
		if e.Fd == tagTimer {
			t.expire()
			continue
		}
		l := t.links[e.Fd]
		if l == nil || l.gen != e.Pad {
			continue // it was closed while earlier ones were served
		}
		if l.state == linkUp && e.Events&unix.EPOLLIN != 0 {
			several = several || busy != nil
			busy = l
		}
		if !t.room() && l.state == linkUp {
			t.askNext = true
			continue
		}
		t.serve(l, e.Events)
	}
	switch {
	case several:
		t.stopDirect()
	case busy == nil || busy.state != linkUp:
	case busy == t.last && t.blocked == 0:
		t.startDirect(busy)
	case busy != t.direct:
		t.stopDirect()
		t.last = busy
	}
}

// serve gives a link its turn.
func (t *Transport) serve(l *link, ready uint32) {
	switch l.state {
	case linkClosed:
	case linkUp, linkLingering:
		if ready&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
			t.setBlocked(l, false)
			t.pump(l.peer)
		}
		if l.state == linkLingering {
			t.discard(l)
		} else if ready&^unix.EPOLLOUT != 0 {
			t.read(l)
		}
	case linkParked:
		// Its dialer sends nothing before the verdict, so it has given up.
		t.dropUnproven(l)
	default:
		t.handshake(l)
	}
}

const (
	// maxUnproven bounds the callers that are not authenticated. One more replaces the oldest
	// one that has sent no hello. If all have sent one, the new caller waits in the kernel.
	maxUnproven = 128
	// maxAccepts bounds the callers that a Poll accepts from a listener.
	maxAccepts = 2 * maxUnproven
)

// acceptAll accepts callers from a listener.
func (t *Transport) acceptAll(i int) {
	if i >= len(t.listeners) {
		return // the listener was closed
	}
	for range maxAccepts {
		if t.unproven >= maxUnproven && !t.dropSilent() {
			t.listenOff()
			return
		}
		fd, err := accept(t.listeners[i])
		switch err {
		case nil:
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			// Stop listening for a while: otherwise the process would never sleep.
			t.listenOff()
			t.setTimer(listenPause)
			return
		default:
			continue // this caller is gone
		}
		l, err := t.addLink(fd, linkHello, unix.EPOLLIN)
		if err != nil {
			continue
		}
		l.in = l.hello[:]
		t.countUnproven(1)
		t.setDeadline(l, t.opt.UnprovenTimeout)
	}
	t.askNext = true // other callers wait there
}

// dropSilent drops the oldest caller whose hello has still not come. It reports whether there was
// one.
func (t *Transport) dropSilent() bool {
	for {
		var oldest *link
		for _, l := range t.links {
			if l != nil && l.state == linkHello && (oldest == nil || l.deadline < oldest.deadline) {
				oldest = l
			}
		}
		if oldest == nil {
			return t.unproven < maxUnproven
		}
		if t.handshake(oldest); oldest.state == linkHello {
			t.dropUnproven(oldest)
			return true
		}
	}
}

// countUnproven counts the links whose process is not authenticated.
func (t *Transport) countUnproven(d int) {
	t.unproven += d
	if d < 0 && t.reopen {
		t.listenOn()
	}
}

func (t *Transport) listenOff() { t.reopen = true; t.listenTo(0) }
func (t *Transport) listenOn()  { t.reopen = false; t.listenTo(unix.EPOLLIN) }

func (t *Transport) listenTo(interest uint32) {
	for i, fd := range t.listeners {
		ev := unix.EpollEvent{Events: interest, Fd: tagListener - int32(i)}
		if err := unix.EpollCtl(t.epfd, unix.EPOLL_CTL_MOD, fd, &ev); err != nil {
			panic("gompi: BUG: epoll refuses a registered listener: " + err.Error())
		}
	}
}

// listenPause is how long a process without free descriptors stops listening.
const listenPause = 100 * time.Millisecond

// setDeadline gives a link the time d for its next step.
func (t *Transport) setDeadline(l *link, d time.Duration) {
	l.deadline = time.Since(t.start) + d
	t.setTimer(d)
}

// setTimer makes the process wake within d.
func (t *Transport) setTimer(d time.Duration) {
	at := time.Since(t.start) + d
	if t.timerAt != 0 && t.timerAt <= at {
		return
	}
	t.timerAt = at
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, d.Nanoseconds()))}
	if err := unix.TimerfdSettime(t.timer, 0, &spec, nil); err != nil {
		panic("gompi: BUG: timerfd_settime: " + err.Error())
	}
}

// expire handles the links whose deadline has passed.
func (t *Transport) expire() {
	var ticks [8]byte
	unix.Read(t.timer, ticks[:]) // EAGAIN if the timer was set again meanwhile
	t.timerAt = 0
	if t.reopen && t.unproven < maxUnproven {
		t.listenOn()
	}
	now := time.Since(t.start)
	if len(t.redials) > 0 {
		t.redialDue(now)
	}
	next := time.Duration(0)
	for _, l := range t.links {
		if l == nil || l.deadline == 0 {
			continue
		}
		if l.deadline > now {
			if next == 0 || l.deadline < next {
				next = l.deadline
			}
			continue
		}
		l.deadline = 0
		t.expireLink(l)
	}
	if next != 0 {
		t.setTimer(next - now)
	}
}

// expireLink handles a link whose deadline has passed.
func (t *Transport) expireLink(l *link) {
	switch l.state {
	case linkDialing, linkWelcome, linkVerdict:
		t.dialFailed(l, unix.ETIMEDOUT)
	case linkHello, linkProof:
		t.dropUnproven(l)
	case linkLingering:
		t.dropLink(l.peer)
	case linkUp:
		// The process may be alive and go on sending. Wait only for what it has sent so far.
		// If that cannot be read, remaining is 0.
		l.peer.expired = true
		l.peer.remaining, _ = unix.IoctlGetInt(l.fd, unix.TIOCINQ)
		t.requeue(l)
	}
}
