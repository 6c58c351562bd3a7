// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// The handshake as steps of a link. Each step reads exactly what it expects,
// so that no frame is taken for a part of it.

var errClosed = errors.New("it closed the connection during the handshake")

// greet moves a link's handshake on; the socket is ready.
func (t *Transport) handshake(l *link) {
	if l.state == linkDialing {
		if err := t.sayHello(l); err != nil {
			t.dialFailed(l, err)
		}
		return
	}
	for len(l.in) > 0 {
		n, e := recv(l.fd, l.in)
		if e == unix.EAGAIN || e == unix.EINTR {
			return
		}
		if n == 0 {
			t.handshakeFailed(l, errnoOr(e, errClosed))
			return
		}
		l.in = l.in[n:]
	}
	var err error
	switch l.state {
	case linkHello:
		err = t.sayWelcome(l)
	case linkWelcome:
		err = t.sayProof(l)
	case linkProof:
		secret, ok := t.secretWith(l.proc.Job)
		want := sign(&secret, dialLabel, l.hello[:], l.welcome[:])
		if !ok || !sameMAC(&want, &l.short) {
			err = errSecret()
			break
		}
		t.introduce(l)
	case linkVerdict:
		if string(l.short[:verdictBytes]) != verdictYes {
			err = fmt.Errorf("%w: verdict %q", transport.ErrProtocol, l.short[:verdictBytes])
			break
		}
		p := l.peer
		if p.spare != nil {
			t.closeLink(p.spare)
			p.spare = nil
		}
		t.adopt(p, l)
	}
	if err != nil {
		t.handshakeFailed(l, err)
	}
}

// secretWith is what processes of a job and this one prove to each other; false: those
// have no business here.
func (t *Transport) secretWith(job wire.JobID) (secret [32]byte, ok bool) {
	switch {
	case job == t.env.Self.Job:
		return t.env.Secret, true
	case t.env.ForeignSecret == nil:
		return secret, false
	}
	return t.env.ForeignSecret(job)
}

// errSecret is made when it is needed: every process would pay for a variable.
func errSecret() error {
	return fmt.Errorf("%w: it does not know this job's secret", transport.ErrProtocol)
}

// ungreeted ends a link whose handshake failed.
func (t *Transport) handshakeFailed(l *link, err error) {
	if l.state == linkWelcome || l.state == linkVerdict {
		t.dialFailed(l, err)
	} else {
		t.dropUnproven(l)
	}
}

func nonce(b *[nonceBytes]byte) error {
	for n := 0; n < len(b); {
		k, err := unix.Getrandom(b[n:], 0)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("tcp: getrandom: %w", err)
		}
		n += max(k, 0)
	}
	return nil
}

func (t *Transport) sayHello(l *link) error {
	if e, err := unix.GetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != 0 {
		return errnoOr(unix.Errno(e), unix.EIO)
	}
	h := hello{from: t.env.Self, to: l.proc}
	if err := nonce(&h.nonce); err != nil {
		return err
	}
	putHello(&l.hello, &h)
	if n, e := send(l.fd, l.hello[:]); n != helloBytes {
		return errnoOr(e, unix.EIO)
	}
	l.state, l.in = linkWelcome, l.welcome[:]
	t.setDeadline(l, t.opt.AnswerTimeout)
	t.setInterest(l, unix.EPOLLIN)
	return nil
}

func (t *Transport) sayWelcome(l *link) error {
	h, err := decodeHello(&l.hello)
	w := welcome{from: t.env.Self}
	if err == nil && h.to != t.env.Self {
		err = fmt.Errorf("%w: it calls process %v", transport.ErrProtocol, h.to)
	}
	if err == nil && (h.from == t.env.Self || h.from == wire.ProcID{}) {
		err = fmt.Errorf("%w: it calls itself %v", transport.ErrProtocol, h.from)
	}
	secret, ok := t.secretWith(h.from.Job)
	if err == nil && !ok {
		err = errSecret()
	}
	if err == nil {
		err = nonce(&w.nonce)
	}
	putWelcome(&l.welcome, &w)
	if err != nil {
		// Unsigned, it only names this side, for the caller's diagnostics.
		send(l.fd, l.welcome[:])
		return err
	}
	mac := sign(&secret, acceptLabel, l.hello[:], l.welcome[:welcomeSigned])
	copy(l.welcome[welcomeSigned:], mac[:])
	if n, e := send(l.fd, l.welcome[:]); n != welcomeBytes {
		return errnoOr(e, unix.EIO)
	}
	l.proc = h.from
	l.state, l.in = linkProof, l.short[:proofBytes]
	t.setDeadline(l, t.opt.UnprovenTimeout)
	return nil
}

func (t *Transport) sayProof(l *link) error {
	w, err := decodeWelcome(&l.welcome)
	if err != nil {
		return err
	}
	if w.from != l.proc {
		return fmt.Errorf("%w: process %v answers", transport.ErrProtocol, w.from)
	}
	secret, ok := t.secretWith(l.proc.Job)
	want := sign(&secret, acceptLabel, l.hello[:], l.welcome[:welcomeSigned])
	if !ok || !sameMAC(&want, &w.mac) {
		return errSecret()
	}
	proof := sign(&secret, dialLabel, l.hello[:], l.welcome[:])
	if n, e := send(l.fd, proof[:]); n != proofBytes {
		return errnoOr(e, unix.EIO)
	}
	l.state, l.in = linkVerdict, l.short[:verdictBytes]
	t.setDeadline(l, t.opt.AnswerTimeout)
	return nil
}
