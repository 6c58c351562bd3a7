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

// linkState is the state of a socket.
type linkState uint8

const (
	linkDialing   linkState = iota // connect is under way
	linkWelcome                    // dialer: has sent the hello, waits for the welcome
	linkVerdict                    // dialer: has sent the proof, waits for the verdict
	linkHello                      // acceptor: waits for the hello
	linkProof                      // acceptor: has sent the welcome, waits for the proof
	linkParked                     // acceptor: authenticated, but the peer has another link
	linkUp                         // carries frames
	linkLingering                  // released: the remaining output is sent, input is discarded
	linkClosed
)

// link is one socket. The Transport owns it.
type link struct {
	state    linkState
	fd       int
	index    int32 // in Transport.links
	gen      int32 // distinguishes this link from earlier ones with the same index
	interest uint32
	deadline time.Duration // since Transport.start; 0: none
	proc     wire.ProcID   // process at the other end; a claim until it is authenticated
	addr     string        // dialer: address of the process
	peer     *peer         // nil while a caller is not authenticated

	// Handshake: the messages sent and received so far.
	hello   [helloBytes]byte
	welcome [welcomeBytes]byte
	in      []byte // remaining part of the message that comes in: hello, welcome or short
	short   [proofBytes]byte

	input
	spliceState
	blocked bool // the kernel takes no more output; EPOLLOUT will tell
	shut    bool // lingering: the sending side is shut down
}

// addLink registers a socket with epoll. On an error it closes the socket.
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

// setInterest sets the events for which epoll wakes the process.
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

// setBlocked records whether l waits for the kernel to take more output.
func (t *Transport) setBlocked(l *link, blocked bool) {
	if l.blocked == blocked {
		return
	}
	l.blocked = blocked
	if blocked {
		t.stopDirect() // no link is read without epoll while any link is blocked
		t.blocked++
	} else {
		t.blocked--
	}
}

// closeLink closes a socket. The caller takes care of the peer.
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
	// This is the last reference to the socket, so closing also removes it from epoll.
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

// dialNext dials the next address of a peer. If there is none left, it uses a parked link, or the
// peer is unreachable. If this process lacks descriptors or memory, dialNext tries again later,
// provided that an earlier dial has started; otherwise Connect reports the error.
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

// redialDue dials the peers again whose pause is over. It forgets those that have connected or
// ended meanwhile.
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

// maxRedials is how often a peer is dialled again that hung up instead of sending a welcome. A peer
// does so when many processes call and a hello takes long.
const maxRedials = 16

// dialFailed gives up a dial and tries the next address, or the same one again.
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

// dropUnproven closes a link that has no peer yet, or is parked.
func (t *Transport) dropUnproven(l *link) {
	if l.peer != nil && l.peer.spare == l {
		l.peer.spare = nil
	}
	t.closeLink(l)
}

// adopt makes l the link of p, which then carries frames. The acceptor tells the dialer by the
// verdict.
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
		// The socket's buffer is almost empty, so a short write is a failure.
		if n, e := send(l.fd, []byte(verdictYes)); n != verdictBytes {
			t.writeFailed(p, errnoOr(e, unix.EPIPE))
		}
	}
	t.pump(p)
}

// introduce gives an authenticated caller its peer. If two processes have dialled each other, the
// dial of the process with the smaller id counts. That process parks the other link until its own
// one is up or has failed. The other process closes its own link at once. No link has carried a
// frame before, so no frame is lost or overtaken.
func (t *Transport) introduce(l *link) {
	p := t.byProc[l.proc]
	if p != nil && p.link != nil && p.link.state == linkVerdict {
		// The peer may have released us and dialled again. Then an earlier verdict and
		// messages may be in the other link.
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
		// This also happens if a peer has released us and dials again before we have read the
		// end of the old link.
		if p.spare != nil {
			t.closeLink(p.spare)
		}
		t.countUnproven(-1)
		l.state, l.peer, l.deadline, p.spare = linkParked, p, 0, l
	}
}

// errnoOr returns the error of a call. e is 0 after a short write; then the error is other.
func errnoOr(e unix.Errno, other error) error {
	if e != 0 {
		return e
	}
	return other
}
