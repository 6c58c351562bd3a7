// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"time"

	"golang.org/x/sys/unix"

	"gompi/transport"
)

const (
	// lookEvery: a Poll that reads the hot link asks epoll only every so
	// often for the others; so does one without any link.
	askInterval = 16
	// hotIdle: a hot link that had nothing this often is no longer hot.
	// Asking it costs more than asking epoll.
	directIdle = 4096
	// spinEvery: a read that finds nothing takes 300-490 ns, and for half of
	// that a lock that whoever delivers data must wait for.
	spinEvery = 40

	// What epoll tells for a descriptor that is not a link.
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

// progress looks for events until Poll takes no more.
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
	if l != nil && !l.queued { // or it has had its turn
		t.readDirect(l)
	}
	if !t.askNext && t.blocked == 0 && t.turn%askInterval != 0 && (l != nil || t.up == 0) {
		return
	}
	t.askNext = false
	t.askEpoll()
}

// readHot reads the hot link.
func (t *Transport) readDirect(l *link) {
	had := l.peer.taken
	t.read(l)
	if l.state != linkUp || l.peer.taken != had {
		t.idle = 0
	} else if t.idle++; t.idle > directIdle {
		t.stopDirect()
	}
}

// heat makes l the link that is read without asking epoll, which is not told of its input
// meanwhile: each message would wake who watches epoll, and who watches those.
func (t *Transport) startDirect(l *link) {
	t.direct, t.idle = l, 0
	t.setInterest(l, l.interest&^unix.EPOLLIN)
}

// cool ends that: epoll tells of all input.
func (t *Transport) stopDirect() {
	l := t.direct
	t.direct, t.last = nil, nil
	if l != nil && l.state != linkClosed {
		t.setInterest(l, l.interest|unix.EPOLLIN)
	}
}

// ask serves what epoll tells. Level-triggered, it tells again what finds no
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
			continue // closed while serving those before it
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
		// Its dialer has nothing to say before the verdict: it has given up.
		t.dropUnproven(l)
	default:
		t.handshake(l)
	}
}

const (
	// maxStrangers bounds the callers that have not proven who they are. One
	// more takes the place of the oldest that has not said who it is; if all
	// have, the kernel keeps it waiting.
	maxUnproven = 128
	// maxCallers is how many a Poll takes from a listener.
	maxAccepts = 2 * maxUnproven
)

// acceptAll takes callers from a listener.
func (t *Transport) acceptAll(i int) {
	if i >= len(t.listeners) {
		return // closed
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
			// Without a pause the process would never sleep.
			t.listenOff()
			t.setTimer(listenPause)
			return
		default:
			continue // that caller is gone
		}
		l, err := t.addLink(fd, linkHello, unix.EPOLLIN)
		if err != nil {
			continue
		}
		l.in = l.hello[:]
		t.countUnproven(1)
		t.setDeadline(l, t.opt.UnprovenTimeout)
	}
	t.askNext = true // others wait there
}

// dropSilent drops the oldest caller whose hello has not come, also not since we
// last looked. It reports whether there was one.
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

// stranger counts links that have not proven who they are.
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

// listenPause is how long a process without free descriptors waits.
const listenPause = 100 * time.Millisecond

// setDeadline gives a link a time from now by which it must have moved on.
func (t *Transport) setDeadline(l *link, d time.Duration) {
	l.deadline = time.Since(t.start) + d
	t.setTimer(d)
}

// setTimer makes the process wake in d at the latest.
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

// expire ends the links whose deadline has passed.
func (t *Transport) expire() {
	var ticks [8]byte
	unix.Read(t.timer, ticks[:]) // EAGAIN if it was set anew meanwhile
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

// late ends one link whose deadline has passed.
func (t *Transport) expireLink(l *link) {
	switch l.state {
	case linkDialing, linkWelcome, linkVerdict:
		t.dialFailed(l, unix.ETIMEDOUT)
	case linkHello, linkProof:
		t.dropUnproven(l)
	case linkLingering:
		t.dropLink(l.peer)
	case linkUp:
		// It may not be dead at all and go on sending: what it sends from
		// now on is not waited for. On an error rest is 0.
		l.peer.expired = true
		l.peer.remaining, _ = unix.IoctlGetInt(l.fd, unix.TIOCINQ)
		t.requeue(l)
	}
}
