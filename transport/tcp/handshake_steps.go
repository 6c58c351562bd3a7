// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// The handshake runs as a state machine of a link. Each step reads exactly the bytes that it
// expects, so it never takes a part of a frame.

var errClosed = errors.New("it closed the connection during the handshake")

// handshake advances the handshake of a link whose socket is ready.
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

// secretWith returns the secret that this process and those of a job share. It returns false if
// there is none; then they must not connect.
func (t *Transport) secretWith(job wire.JobID) (secret [32]byte, ok bool) {
	switch {
	case job == t.env.Self.Job:
		return t.env.Secret, true
	case t.env.ForeignSecret == nil:
		return secret, false
	}
	return t.env.ForeignSecret(job)
}

// errSecret is a function, because a variable would cost every process its initialisation.
func errSecret() error {
	return fmt.Errorf("%w: it does not know this job's secret", transport.ErrProtocol)
}

// handshakeFailed ends a link whose handshake has failed.
func (t *Transport) handshakeFailed(l *link, err error) {
	if l.state == linkWelcome || l.state == linkVerdict {
		t.dialFailed(l, err)
	} else {
		t.dropUnproven(l)
	}
}

// nonce fills b with random bytes.
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

// sayHello sends the first message of the dialer.
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

// sayWelcome answers a hello on the side of the acceptor.
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
		// Without a valid code, the welcome only names this process, for the caller's error.
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

// sayProof checks a welcome and answers it on the side of the dialer.
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
