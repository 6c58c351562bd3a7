// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"fmt"
	"time"

	"gompi/mpi"
)

// exchange is the mover of the methods in which sources take part: COL, P2P and those with
// windows. Early it makes the merged communicator, and moves constant data over it. A
// newcomer has said Ready, and waits; of a source it is the module's goroutine that has
// seen the change coming. What each waits for:
//
//	            NB                              T                           WD
//	newcomer    all it receives, in blocking calls, with each
//	source      its requests, which Checkpoint  what it receives, and that  as T; then for the newcomers
//	            tests                           its offers are taken        that report to it
//
// Then each member says Release. The change is delivered to nobody before that, so neither a
// barrier nor an agreement is needed. Variable data is pre-copied by copies of the sources'
// memory, and what was written since is read at the commit (readAtCommit).
type exchange struct {
	rc      *reconfiguration
	by      exchanger
	reports bool // with strategy WD newcomers report the end by a message; windows have their Free for that
}

// An exchanger is the part of an exchange that differs between methods.
type exchanger interface {
	// exchange moves data and waits for it: at the commit, or in the background with the
	// rate limit of the reconfiguration.
	exchange(list []*transfer) error
}

// A starter is an exchanger with requests: it has strategy NB.
type starter interface {
	// start begins to move one array of distributed data.
	start(x *transfer) (requests, error)
}

func (m *exchange) ready(context.Context) error { return nil }

func (m *exchange) close() {}

func (m *exchange) early(ctx context.Context) error {
	rc := m.rc
	rc.background = ctx
	if rc.publication != nil {
		for i, x := range rc.transfers {
			x.have = rc.publication.memory[i]
		}
	}
	if err := rc.connect(); err != nil {
		return err
	}
	if err := rc.compareRegistries(); err != nil {
		return err
	}
	rc.limit = rc.newRateLimit(ctx)
	defer func() { rc.limit = nil }()
	start := time.Now()
	defer func() { rc.times.Async = rc.times.spent(Background, start) }()
	if err := rc.inPlace.finish(rc.pending(Constant)); err != nil {
		return err
	}
	if err := m.exchangeConstant(); err != nil {
		return err
	}
	if rc.preCopies() {
		if err := m.preCopy(); err != nil {
			return err
		}
	}
	if rc.schedule.drains && m.reports {
		return m.awaitDrains()
	}
	return nil
}

func (m *exchange) finish(list []*transfer) error {
	var preCopied, rest []*transfer
	for _, x := range list {
		if x.preCopied {
			preCopied = append(preCopied, x)
		} else {
			rest = append(rest, x)
		}
	}
	if err := m.rc.readAtCommit(preCopied, nil); err != nil {
		return err
	}
	return m.by.exchange(rest)
}

func (m *exchange) exchangeConstant() error {
	list := m.rc.pending(Constant)
	if m.rc.schedule.polled {
		return m.exchangePolled(list)
	}
	return m.by.exchange(list)
}

// exchangePolled begins all requests, and waits until Checkpoint has found them complete.
func (m *exchange) exchangePolled(list []*transfer) error {
	rc, p := m.rc, &polled{over: make(chan struct{})}
	for _, x := range list {
		reqs, err := m.startOne(x)
		if p.reqs = append(p.reqs, reqs.list...); err != nil {
			p.giveUp(rc.merged)
			return transferError(x, rc, err)
		}
	}
	for _, x := range list {
		if err := rc.copyKeptInPieces(x); err != nil {
			p.giveUp(rc.merged)
			return transferError(x, rc, err)
		}
	}
	var err error
	if rc.old < 0 {
		err = mpi.Waitall(p.reqs)
	} else {
		err = rc.m.awaitPolled(rc.background, p, rc.merged)
	}
	if err != nil {
		return fmt.Errorf("mam: constant data, from %d to %d ranks: %w", rc.times.NS, rc.times.ND, err)
	}
	for _, x := range list {
		x.done = true
		rc.report(int(x.received))
	}
	return nil
}

func (m *exchange) startOne(x *transfer) (requests, error) {
	if x.Replicated {
		return m.rc.replicate(x)
	}
	by, ok := m.by.(starter)
	if !ok {
		return requests{}, fmt.Errorf("gompi: BUG: method %v has no requests", m.rc.config.Method)
	}
	return by.start(x)
}

// tagDrained is behind the tags of arrays.
const tagDrained = maxArrays

// awaitDrains is the end of strategy WD where data comes by messages: each newcomer tells one
// source that it has all its data, and that source waits for it.
func (m *exchange) awaitDrains() error {
	rc := m.rc
	comm := rc.comm()
	for d, source := range rc.newcomerSources() {
		var err error
		switch {
		case d == rc.new:
			err = mpi.Send(comm, []byte{}, source, tagDrained)
		case rc.merged.Rank() == source:
			_, err = mpi.Recv(comm, []byte{}, rc.to[d], tagDrained)
		}
		if err != nil {
			return fmt.Errorf("mam: from %d to %d ranks: the end of newcomer %d: %w", rc.times.NS, rc.times.ND, d-len(rc.stay), err)
		}
	}
	return nil
}

// exchangeEach moves arrays one after the other, and waits for each: at the commit replicated
// data by messages and distributed data by exchange, in the background all in pieces.
func (rc *reconfiguration) exchangeEach(list []*transfer, exchange func(x *transfer) error) error {
	for _, x := range list {
		if x.done {
			continue
		}
		if err := rc.allocate(x, rc.limit); err != nil {
			return err
		}
		var err error
		switch {
		case rc.limit != nil:
			err = rc.exchangeInPieces(x)
		case x.Replicated:
			err = rc.waitStarted(rc.replicate(x))
		default:
			err = exchange(x)
		}
		if err != nil {
			return transferError(x, rc, err)
		}
		x.done = true
	}
	return nil
}

// waitStarted waits for requests, unless they could not all be started.
func (rc *reconfiguration) waitStarted(reqs requests, err error) error {
	if err != nil {
		return err
	}
	return rc.wait(reqs)
}

// replicate begins to give newcomers replicated data, each from one source: see
// newcomerSources.
func (rc *reconfiguration) replicate(x *transfer) (reqs requests, err error) {
	bufs := rc.comm().Bufs()
	old, target := rc.memory(x)
	for peer, s := range rc.segmentsOf(x, false) {
		for step := range s.pieces(x.Bytes, stepBytes) {
			b, err := step.buf(target, x.Bytes, false)
			if err != nil {
				return reqs, err
			}
			reqs.add(bufs.Irecv(b, peer, x.tag), step.n)
		}
	}
	for peer, s := range rc.segmentsOf(x, true) {
		for step := range s.pieces(x.Bytes, stepBytes) {
			b, err := step.buf(old, x.Bytes, true)
			if err != nil {
				return reqs, err
			}
			reqs.add(bufs.Isend(b, peer, x.tag), step.n)
		}
	}
	return reqs, nil
}
