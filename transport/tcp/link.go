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

// linkState says what a socket is doing.
type linkState uint8

const (
	linkDialing   linkState = iota // connect is under way
	linkWelcome                    // dialer: sent the hello, awaits the welcome
	linkVerdict                    // dialer: sent the proof, awaits the verdict
	linkHello                      // acceptor: awaits the hello
	linkProof                      // acceptor: sent the welcome, awaits the proof
	linkParked                     // acceptor: proven, but the peer has another link
	linkUp                         // frames flow
	linkLingering                  // released: the rest is sent, input discarded
	linkClosed
)

// link is one socket. Its owner is the Transport.
type link struct {
	state    linkState
	fd       int
	index    int32 // in Transport.links
	gen      int32 // tells this link from earlier ones with the same index
	interest uint32
	deadline time.Duration // since Transport.start; 0 is none
	proc     wire.ProcID   // whom it reaches: claimed until proven
	addr     string        // dialer: where it reaches it
	peer     *peer         // nil while an acceptor's caller is a stranger

	// Handshake: what was sent and what has come in so far.
	hello   [helloBytes]byte
	welcome [welcomeBytes]byte
	in      []byte // part of one of the above, or of short
	short   [proofBytes]byte

	input
	spliceState
	blocked bool // the kernel takes no more; EPOLLOUT will tell
	shut    bool // lingering: our side is shut down
}

// addLink registers a socket with epoll. On an error the socket is closed.
func (t *Transport) addLink(fd int, state linkState, interest uint32) (*link, error) {
	index := len(t.links)
	if k := len(t.freeLinks); k > 0 {
		index = int(t.freeLinks[k-1])
	}
	l := &link{state: state, fd: fd, index: int32(index), interest: interest}
	t.linkGen++
	l.gen = t.linkGen
	ev := unix.EpollEvent{Events: interest, Fd: l.index, Pad: l.gen}
	if err := unix.EpollCtl(t.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("tcp: epoll: %w", err)
	}
	if index == len(t.links) {
		t.links = append(t.links, l)
	} else {
		t.freeLinks = t.freeLinks[:len(t.freeLinks)-1]
		t.links[index] = l
	}
	return l, nil
}

// setInterest changes what wakes us for l.
func (t *Transport) setInterest(l *link, interest uint32) {
	if l.interest == interest {
		return
	}
	l.interest = interest
	ev := unix.EpollEvent{Events: interest, Fd: l.index, Pad: l.gen}
	if err := unix.EpollCtl(t.epfd, unix.EPOLL_CTL_MOD, l.fd, &ev); err != nil {
		panic("gompi: BUG: epoll refuses a registered socket: " + err.Error())
	}
}

// setBlocked notes whether l waits for the kernel to take more.
func (t *Transport) setBlocked(l *link, blocked bool) {
	if l.blocked == blocked {
		return
	}
	l.blocked = blocked
	if blocked {
		t.stopDirect() // the hot link is not read without epoll until all have room
		t.blocked++
	} else {
		t.blocked--
	}
}

// closeLink ends a socket for good. Its peer, if any, is the caller's concern.
func (t *Transport) closeLink(l *link) {
	if l.state == linkClosed {
		return
	}
	switch l.state {
	case linkHello, linkProof:
		t.countUnproven(-1)
	case linkUp:
		t.up--
	case linkLingering:
		t.lingering--
	}
	l.state = linkClosed
	t.splicer.forget(l)
	t.setBlocked(l, false)
	// The last reference to the socket: closing also removes it from epoll.
	unix.Close(l.fd)
	t.links[l.index] = nil
	t.freeLinks = append(t.freeLinks, l.index)
	if t.direct == l {
		t.direct = nil
	}
	if t.last == l {
		t.last = nil
	}
	l.peer, l.buf = nil, nil
}

// dialNext starts a connection to the peer's next address. Without one left
// it falls back on a parked link, or the peer is unreachable. If this process
// lacks descriptors or memory after dials that have failed, it tries again later;
// at the first dial Connect says so.
func (t *Transport) dialNext(p *peer) {
	for p.nextAddr < len(p.addrs) {
		addr := p.addrs[p.nextAddr]
		p.nextAddr++
		fd, err := dial(addr)
		if err == nil {
			var l *link
			if l, err = t.addLink(fd, linkDialing, unix.EPOLLOUT); err == nil {
				l.proc, l.addr, l.peer = p.proc, addr, p
				p.link, p.dialled = l, true
				t.setDeadline(l, t.opt.DialTimeout)
				return
			}
		}
		p.dialErr = err
		if retry.OutOfFiles(err) || retry.OutOfMemory(err) {
			p.nextAddr--
			break
		}
	}
	if l := p.spare; l != nil {
		p.spare = nil
		t.adopt(p, l)
		return
	}
	if p.dialled && p.nextAddr < len(p.addrs) && p.retry.Allows(p.dialErr) {
		pause := p.retry.NextPause()
		p.redialAt = time.Since(t.start) + pause
		t.redials = append(t.redials, p)
		t.setTimer(pause)
		return
	}
	t.fail(p, fmt.Errorf("%w: process %v: %v", transport.ErrUnreachable, p.proc, p.dialErr))
}

// dialLater dials the peers again whose pause has ended. What has connected, or
// been given up, meanwhile is forgotten.
func (t *Transport) redialDue(now time.Duration) {
	all := t.redials
	t.redials = nil
	for _, p := range all {
		switch {
		case p.state != peerDialing || p.link != nil:
		case p.redialAt > now:
			t.redials = append(t.redials, p)
			t.setTimer(p.redialAt - now)
		default:
			t.dialNext(p)
		}
	}
}

// maxRedials is how often a peer is dialled again that has hung up instead of a
// welcome: it does so when many call and a hello takes long.
const maxRedials = 16

// undialled gives up a dial and tries the next address, or the same once more.
func (t *Transport) dialFailed(l *link, err error) {
	p := l.peer
	if l.state == linkWelcome && hungUp(err) && p.redials < maxRedials {
		p.redials++
		p.nextAddr--
	}
	t.closeLink(l)
	p.link = nil
	p.dialErr = fmt.Errorf("%s: %w", l.addr, err)
	t.dialNext(p)
}

func hungUp(err error) bool {
	return errors.Is(err, errClosed) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// dropStranger closes a link that serves nobody yet.
func (t *Transport) dropUnproven(l *link) {
	if l.peer != nil && l.peer.spare == l {
		l.peer.spare = nil
	}
	t.closeLink(l)
}

// adopt makes l the link of p and lets frames flow. On the accepting side the
// dialer learns it by the verdict.
func (t *Transport) adopt(p *peer, l *link) {
	accepted := l.state != linkVerdict
	if l.state == linkProof {
		t.countUnproven(-1)
	}
	l.state, l.peer, l.deadline, p.link = linkUp, p, 0, l
	l.in = nil
	l.buf = make([]byte, firstBuffer)
	p.state, p.dialErr = peerUp, nil
	t.up++
	t.setInterest(l, unix.EPOLLIN)
	if sa, err := unix.Getpeername(l.fd); err == nil {
		l.loopback = isLoopback(sa)
	}
	if accepted {
		// The socket buffer is as good as empty: a short write is a failure.
		if n, e := send(l.fd, []byte(verdictYes)); n != verdictBytes {
			t.writeFailed(p, errnoOr(e, unix.EPIPE))
		}
	}
	t.pump(p)
}

// introduce gives a proven caller its peer. Of two crossed dials the one by
// the process with the smaller id is used: that process parks the other until
// its own stands or has failed, the other process drops its own at once. No
// frame has gone over either before, so nothing is lost or overtaken.
func (t *Transport) introduce(l *link) {
	p := t.byProc[l.proc]
	if p != nil && p.link != nil && p.link.state == linkVerdict {
		// Of a peer that released us and calls again, an earlier verdict
		// and messages may lie there.
		t.handshake(p.link)
	}
	switch {
	case p == nil:
		p = t.newPeer(l.proc)
		t.emit(p, transport.Event{Kind: transport.EvUp, Proc: p.proc})
		t.adopt(p, l)
	case p.state == peerDialing && l.proc.Before(t.env.Self):
		if p.link != nil {
			t.closeLink(p.link)
		}
		t.adopt(p, l)
	default:
		// Also a peer that has released us and calls again, before we have
		// read the end of the old link.
		if p.spare != nil {
			t.closeLink(p.spare)
		}
		t.countUnproven(-1)
		l.state, l.peer, l.deadline, p.spare = linkParked, p, 0, l
	}
}

// errnoOr turns a failed call into an error; e is 0 after a short write.
func errnoOr(e unix.Errno, other error) error {
	if e != 0 {
		return e
	}
	return other
}
