// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"gompi/internal/test/testlab"
	"gompi/mpi"
)

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

// place is where this rank is in the communicator of e.
func (pl *player) place(e *testlab.Event) testlab.Place {
	at, _ := pl.p.Layout(e.Comm).Place(pl.rank)
	return at
}

// peer is how a communicator calls a rank of World with which this one
// exchanges messages in it.
func (pl *player) peer(e *testlab.Event, rank int) int {
	return slices.Index(pl.place(e).Peers(), rank)
}

func (pl *player) send(c *mpi.Comm, e *testlab.Event, id uint64, n int, how testlab.SendHow, due int) error {
	to := pl.peer(e, e.To)
	buf := testlab.Payload(pl.p.Seed, id, n)
	left := func(_ mpi.Status, err error) error {
		spoil(buf)
		return err
	}
	switch how {
	case testlab.Send:
		return left(mpi.Status{}, mpi.Send(c, buf, to, e.Tag))
	case testlab.Ssend:
		return left(mpi.Status{}, mpi.Ssend(c, buf, to, e.Tag))
	case testlab.Bsend:
		return left(mpi.Status{}, mpi.Bsend(c, buf, to, e.Tag))
	case testlab.Isend:
		pl.add(due, mpi.Isend(c, buf, to, e.Tag), left)
	case testlab.Issend:
		pl.add(due, mpi.Issend(c, buf, to, e.Tag), left)
	case testlab.SendPersistent:
		p := mpi.SendInit(c, buf, to, e.Tag)
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
		r := mpi.Isend(c, buf, to, e.Tag)
		if err := r.Cancel(); err != nil {
			return err
		}
		st, err := r.Wait()
		if err != nil {
			return err
		}
		if st.Cancelled {
			if err := mpi.Send(c, buf, to, e.Tag); err != nil {
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
	from, tag := pl.peer(e, e.From), e.Tag
	if e.AnyTag {
		tag = mpi.AnyTag
	}
	whole := guarded(e.Bytes - e.Short + e.Room)
	buf := whole[:len(whole)-guard]
	// got books what came; it may be called later.
	got := func(st mpi.Status, err error) error { return pl.got(e, 0, whole, st, err) }
	switch e.Recv {
	case testlab.Recv:
		return got(mpi.Recv(c, buf, from, tag))
	case testlab.Irecv:
		pl.add(e.RecvDue, mpi.Irecv(c, buf, from, tag), got)
		return nil
	case testlab.RecvPersistent:
		p := mpi.RecvInit(c, buf, from, tag)
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
		st, err := c.Probe(from, tag)
		if err != nil {
			return err
		}
		return got(mpi.Recv(c, buf[:st.Bytes], st.Source, st.Tag))
	case testlab.IprobeRecv:
		for {
			found, st, err := c.Iprobe(from, tag)
			if err != nil {
				return err
			}
			if found {
				return got(mpi.Recv(c, buf[:st.Bytes], st.Source, st.Tag))
			}
			runtime.Gosched()
		}
	case testlab.MprobeMrecv:
		m, _, err := c.Mprobe(from, tag)
		if err != nil {
			return err
		}
		return got(mpi.Mrecv(m, buf))
	case testlab.ImprobeImrecv:
		for {
			found, m, _, err := c.Improbe(from, tag)
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
		b, st, err := mpi.RecvNew[byte](c, from, tag)
		whole = append(b, guarded(0)...)
		return pl.got(e, 0, whole, st, err)
	case testlab.RecvRetry:
		r := mpi.Irecv(c, buf, from, tag)
		if err := r.Cancel(); err != nil {
			return err
		}
		st, err := r.Wait()
		if err == nil && st.Cancelled {
			st, err = mpi.Recv(c, buf, from, tag)
		}
		return got(st, err)
	case testlab.RecvGiveUp:
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		st, err := mpi.Recv(c.WithContext(ctx), buf, from, tag)
		if errors.Is(err, mpi.ErrCancelled) {
			st, err = mpi.Recv(c, buf, from, tag)
		}
		return got(st, err)
	}
	return fmt.Errorf("unknown way to receive")
}

// got books a received message. whole is the buffer with its guard.
func (pl *player) got(e *testlab.Event, index int, whole []byte, st mpi.Status, err error) error {
	r := testlab.Result{ID: e.ID, Index: index, Source: pl.place(e).Peers()[max(0, st.Source)], Tag: st.Tag, Bytes: st.Bytes}
	room := len(whole) - guard
	for _, b := range whole[room:] {
		if b != 0x5a {
			return fmt.Errorf("bytes behind the receive buffer were written")
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
	k, n := slices.Index(e.Ring, pl.rank), len(e.Ring)
	next, prev := pl.peer(e, e.Ring[(k+1)%n]), pl.peer(e, e.Ring[(k+n-1)%n])
	out := testlab.Payload(pl.p.Seed, testlab.MessageID(e.ID, pl.rank), e.Bytes)
	whole := guarded(e.Bytes)
	st, err := mpi.Sendrecv(c, out, next, e.Tag, whole[:e.Bytes], prev, e.Tag)
	spoil(out)
	return pl.got(e, 0, whole, st, err)
}

func (pl *player) withdraw(c *mpi.Comm, e *testlab.Event) error {
	whole, from := guarded(64), pl.peer(e, e.From)
	var st mpi.Status
	var err error
	if e.ID%2 == 0 {
		r := mpi.Irecv(c, whole[:64], from, e.Tag)
		if err := r.Cancel(); err != nil {
			return err
		}
		st, err = r.Wait()
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		st, err = mpi.Recv(c.WithContext(ctx), whole[:64], from, e.Tag)
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
