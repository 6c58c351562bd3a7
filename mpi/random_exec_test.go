// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"gompi/internal/testlab"
	"gompi/mpi"
)

// player runs one rank's part of a random program.
type player struct {
	p     *testlab.Program
	rank  int
	comms map[int]*mpi.Comm
	out   []testlab.Result
	open  []opened
	err   error
}

// opened is something started that is not complete yet.
type opened struct {
	due  int
	req  mpi.Request
	done func(mpi.Status, error) error
}

// play runs rank's part of p and returns its results.
func play(p *testlab.Program, world *mpi.Comm) ([]testlab.Result, error) {
	pl := &player{p: p, rank: world.Rank(), comms: map[int]*mpi.Comm{testlab.World: world}}
	wild, err := world.Dup()
	if err != nil {
		return nil, err
	}
	pl.comms[testlab.Wild] = wild
	if err := world.Process().AttachBuffer(mpi.BufferAutomatic); err != nil {
		return nil, err
	}
	for i := range p.Events {
		e := &p.Events[i]
		if !e.Participates(pl.rank) {
			continue
		}
		if err := pl.complete(e.ID); err != nil {
			return nil, fmt.Errorf("before event\n%v\n%w", e, err)
		}
		if err := pl.event(e); err != nil {
			return nil, fmt.Errorf("event\n%v\n%w", e, err)
		}
	}
	if err := pl.complete(testlab.Never + 1); err != nil {
		return nil, fmt.Errorf("at the end: %w", err)
	}
	if err := world.Barrier(); err != nil {
		return nil, err
	}
	for id, c := range pl.comms {
		if id != testlab.World {
			c.Free()
		}
	}
	return pl.out, nil
}

func (pl *player) event(e *testlab.Event) error {
	c := pl.comms[e.Comm]
	switch e.Kind {
	case testlab.Message:
		return pl.message(c, e)
	case testlab.Group:
		return pl.group(c, e)
	case testlab.Exchange:
		return pl.exchange(c, e)
	case testlab.Collective:
		return pl.collective(c, e)
	case testlab.Withdraw:
		return pl.withdraw(c, e)
	case testlab.Dup:
		d, err := c.Dup()
		pl.comms[e.ID] = d
		return err
	}
	return fmt.Errorf("unknown event")
}

// add keeps what is to be completed by an event to come.
func (pl *player) add(due int, req mpi.Request, done func(mpi.Status, error) error) {
	pl.open = append(pl.open, opened{due, req, done})
}

// complete completes, in one of the ways that there are, at least everything
// that is due before event id.
func (pl *player) complete(id int) error {
	for turn := 0; ; turn++ {
		due := 0
		for _, o := range pl.open {
			if o.due < id {
				due++
			}
		}
		if due == 0 {
			return nil
		}
		style := int(testlab.Sum(fmt.Append(nil, pl.p.Seed, id, pl.rank, turn/1000)) % 8)
		if err := pl.someWay(style, id); err != nil {
			return err
		}
	}
}

// someWay completes some of what is open, if something is complete.
func (pl *player) someWay(style, id int) error {
	reqs := make([]mpi.Request, len(pl.open))
	for i, o := range pl.open {
		reqs[i] = o.req
	}
	finished := map[int]func() error{}
	book := func(i int, st mpi.Status, err error) {
		finished[i] = func() error { return pl.open[i].done(st, err) }
	}
	switch style {
	case 0: // Wait, in order
		for i, o := range pl.open {
			if o.due < id {
				st, err := o.req.Wait()
				book(i, st, err)
			}
		}
	case 1: // Waitall with statuses: errors of single requests would be joined
		for i, o := range pl.open {
			if o.due >= id {
				reqs[i] = mpi.Request{}
			}
		}
		sts := make([]mpi.Status, len(reqs))
		active := make([]bool, len(reqs))
		for i, r := range reqs {
			active[i] = !r.IsNull()
		}
		if err := mpi.WaitallStatuses(reqs, sts); err != nil && !errors.Is(err, mpi.ErrTruncate) {
			return err
		}
		for i := range sts {
			if active[i] {
				book(i, sts[i], errUnknown)
			}
		}
	case 2:
		i, st, err := mpi.Waitany(reqs)
		if i == mpi.Undefined {
			return fmt.Errorf("Waitany finds no request among %d", len(reqs))
		}
		book(i, st, err)
	case 3:
		for _, c := range mpi.Waitsome(reqs) {
			book(c.Index, c.Status, c.Err)
		}
	case 4:
		done, i, st, err := mpi.Testany(reqs)
		if done {
			book(i, st, err)
		}
	case 5:
		for _, c := range mpi.Testsome(reqs) {
			book(c.Index, c.Status, c.Err)
		}
	case 6:
		for i, o := range pl.open {
			if done, _, _ := o.req.GetStatus(); done {
				done, st, err := o.req.Test()
				if !done {
					return fmt.Errorf("Test says no after GetStatus said yes")
				}
				book(i, st, err)
			}
		}
	case 7:
		for i, o := range pl.open {
			if done, st, err := o.req.Test(); done {
				book(i, st, err)
			}
		}
	}
	if len(finished) == 0 {
		runtime.Gosched()
		return nil
	}
	var rest []opened
	for i, o := range pl.open {
		if f := finished[i]; f == nil {
			rest = append(rest, o)
		} else if err := f(); err != nil {
			return err
		}
	}
	pl.open = rest
	return nil
}

// errUnknown stands for the error of one request among those that Waitall
// joined.
var errUnknown = errors.New("unknown")

// spoil makes a send buffer useless: what is read of it later was read too
// late.
func spoil(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

func (pl *player) message(c *mpi.Comm, e *testlab.Event) error {
	if e.From == e.To {
		if err := pl.receive(c, e); err != nil {
			return err
		}
		return pl.send(c, e, testlab.MessageID(e.ID, 0), e.Bytes, e.Send, e.SendDue)
	}
	if pl.rank == e.To {
		return pl.receive(c, e)
	}
	return pl.send(c, e, testlab.MessageID(e.ID, 0), e.Bytes, e.Send, e.SendDue)
}

func (pl *player) send(c *mpi.Comm, e *testlab.Event, id uint64, n int, how testlab.SendHow, due int) error {
	buf := testlab.Payload(pl.p.Seed, id, n)
	left := func(_ mpi.Status, err error) error {
		spoil(buf)
		if err == errUnknown {
			err = nil
		}
		return err
	}
	switch how {
	case testlab.Send:
		return left(mpi.Status{}, mpi.Send(c, buf, e.To, e.Tag))
	case testlab.Ssend:
		return left(mpi.Status{}, mpi.Ssend(c, buf, e.To, e.Tag))
	case testlab.Bsend:
		return left(mpi.Status{}, mpi.Bsend(c, buf, e.To, e.Tag))
	case testlab.Isend:
		pl.add(due, mpi.Isend(c, buf, e.To, e.Tag), left)
	case testlab.Issend:
		pl.add(due, mpi.Issend(c, buf, e.To, e.Tag), left)
	case testlab.SendPersistent:
		p := mpi.SendInit(c, buf, e.To, e.Tag)
		if err := p.Start(); err != nil {
			return err
		}
		pl.add(due, p.Request(), func(st mpi.Status, err error) error {
			if ferr := p.Free(); err == nil && ferr != nil {
				err = ferr
			}
			return left(st, err)
		})
	case testlab.SendRetry:
		r := mpi.Isend(c, buf, e.To, e.Tag)
		if err := r.Cancel(); err != nil {
			return err
		}
		st, err := r.Wait()
		if err != nil {
			return err
		}
		if st.Cancelled {
			if err := mpi.Send(c, buf, e.To, e.Tag); err != nil {
				return err
			}
		}
		return left(st, nil)
	}
	return nil
}

// guard is what lies behind each receive buffer.
const guard = 32

func guarded(n int) []byte {
	b := make([]byte, n+guard)
	for i := range b {
		b[i] = 0x5a
	}
	return b
}

// receive runs the receiving half of a message.
func (pl *player) receive(c *mpi.Comm, e *testlab.Event) error {
	tag := e.Tag
	if e.AnyTag {
		tag = mpi.AnyTag
	}
	whole := guarded(e.Bytes - e.Short + e.Room)
	buf := whole[:len(whole)-guard]
	// got books what came; it may be called later.
	got := func(st mpi.Status, err error) error { return pl.got(e, 0, whole, st, err) }
	switch e.Recv {
	case testlab.Recv:
		return got(mpi.Recv(c, buf, e.From, tag))
	case testlab.Irecv:
		pl.add(e.RecvDue, mpi.Irecv(c, buf, e.From, tag), got)
		return nil
	case testlab.RecvPersistent:
		p := mpi.RecvInit(c, buf, e.From, tag)
		if err := p.Start(); err != nil {
			return err
		}
		pl.add(e.RecvDue, p.Request(), func(st mpi.Status, err error) error {
			if ferr := p.Free(); err == nil && ferr != nil {
				err = ferr
			}
			return got(st, err)
		})
		return nil
	case testlab.ProbeRecv:
		st, err := c.Probe(e.From, tag)
		if err != nil {
			return err
		}
		return got(mpi.Recv(c, buf[:st.Bytes], st.Source, st.Tag))
	case testlab.IprobeRecv:
		for {
			found, st, err := c.Iprobe(e.From, tag)
			if err != nil {
				return err
			}
			if found {
				return got(mpi.Recv(c, buf[:st.Bytes], st.Source, st.Tag))
			}
			runtime.Gosched()
		}
	case testlab.MprobeMrecv:
		m, _, err := c.Mprobe(e.From, tag)
		if err != nil {
			return err
		}
		return got(mpi.Mrecv(m, buf))
	case testlab.ImprobeImrecv:
		for {
			m, found, _, err := c.Improbe(e.From, tag)
			if err != nil {
				return err
			}
			if found {
				pl.add(e.RecvDue, mpi.Imrecv(m, buf), got)
				return nil
			}
			runtime.Gosched()
		}
	case testlab.RecvNew:
		b, st, err := mpi.RecvNew[byte](c, e.From, tag)
		whole = append(b, guarded(0)...)
		return pl.got(e, 0, whole, st, err)
	case testlab.RecvRetry:
		r := mpi.Irecv(c, buf, e.From, tag)
		if err := r.Cancel(); err != nil {
			return err
		}
		st, err := r.Wait()
		if err == nil && st.Cancelled {
			st, err = mpi.Recv(c, buf, e.From, tag)
		}
		return got(st, err)
	case testlab.RecvGiveUp:
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		st, err := mpi.Recv(c.WithContext(ctx), buf, e.From, tag)
		if errors.Is(err, mpi.ErrCancelled) {
			st, err = mpi.Recv(c, buf, e.From, tag)
		}
		return got(st, err)
	}
	return fmt.Errorf("unknown way to receive")
}

// got books a received message. whole is the buffer with its guard.
func (pl *player) got(e *testlab.Event, index int, whole []byte, st mpi.Status, err error) error {
	r := testlab.Result{ID: e.ID, Index: index, Source: st.Source, Tag: st.Tag, Bytes: st.Bytes}
	room := len(whole) - guard
	for _, b := range whole[room:] {
		if b != 0x5a {
			return fmt.Errorf("bytes behind the receive buffer were written")
		}
	}
	if err == errUnknown {
		err = nil
		if e.Short > 0 {
			err = &mpi.Error{Class: mpi.ErrTruncate, Got: int64(e.Bytes), Want: int64(room)}
		}
	}
	if err != nil {
		var me *mpi.Error
		if !errors.Is(err, mpi.ErrTruncate) || !errors.As(err, &me) {
			return err
		}
		if me.Got != int64(e.Bytes) || me.Want != int64(room) {
			return fmt.Errorf("truncation of %d bytes to %d: %w", e.Bytes, room, err)
		}
		r.Outcome = testlab.OutTruncated
	}
	if st.Bytes < 0 || st.Bytes > int64(room) {
		return fmt.Errorf("status of %d bytes for a buffer of %d", st.Bytes, room)
	}
	b := whole[:st.Bytes]
	r.Sum = testlab.Sum(b)
	if e.Kind == testlab.Group && len(b) >= testlab.GroupHeader {
		r.Message = binary.LittleEndian.Uint64(b)
	}
	pl.out = append(pl.out, r)
	return nil
}

// groupRoom is a buffer that takes every message of the programs.
const groupRoom = 300<<10 + 64

func (pl *player) group(c *mpi.Comm, e *testlab.Event) error {
	tag := e.Tag
	if e.Comm == testlab.Wild {
		tag = mpi.AnyTag
	}
	if pl.rank == e.To && e.Recv == testlab.Irecv {
		for i := range e.Parts {
			whole := guarded(groupRoom)
			pl.add(e.RecvDue, mpi.Irecv(c, whole[:groupRoom], mpi.AnySource, tag), func(st mpi.Status, err error) error {
				return pl.got(e, i, whole, st, err)
			})
		}
	}
	for i, part := range e.Parts {
		if part.From != pl.rank {
			continue
		}
		if err := pl.send(c, e, testlab.MessageID(e.ID, i), part.Bytes, part.Send, part.Due); err != nil {
			return err
		}
	}
	if pl.rank == e.To && e.Recv == testlab.Recv {
		for i := range e.Parts {
			whole := guarded(groupRoom)
			st, err := mpi.Recv(c, whole[:groupRoom], mpi.AnySource, tag)
			if err := pl.got(e, i, whole, st, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (pl *player) exchange(c *mpi.Comm, e *testlab.Event) error {
	k := 0
	for e.Ring[k] != pl.rank {
		k++
	}
	n := len(e.Ring)
	next, prev := e.Ring[(k+1)%n], e.Ring[(k+n-1)%n]
	out := testlab.Payload(pl.p.Seed, testlab.MessageID(e.ID, pl.rank), e.Bytes)
	whole := guarded(e.Bytes)
	st, err := mpi.Sendrecv(c, out, next, e.Tag, whole[:e.Bytes], prev, e.Tag)
	spoil(out)
	return pl.got(e, 0, whole, st, err)
}

func (pl *player) withdraw(c *mpi.Comm, e *testlab.Event) error {
	whole := guarded(64)
	var st mpi.Status
	var err error
	if e.ID%2 == 0 {
		r := mpi.Irecv(c, whole[:64], e.From, e.Tag)
		if err := r.Cancel(); err != nil {
			return err
		}
		st, err = r.Wait()
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		st, err = mpi.Recv(c.WithContext(ctx), whole[:64], e.From, e.Tag)
		if errors.Is(err, mpi.ErrCancelled) {
			st.Cancelled, err = true, nil
		}
	}
	if err != nil {
		return err
	}
	if !st.Cancelled {
		return fmt.Errorf("a receive that nothing matches got %+v", st)
	}
	pl.out = append(pl.out, testlab.Result{ID: e.ID, Outcome: testlab.OutWithdrawn})
	return nil
}
