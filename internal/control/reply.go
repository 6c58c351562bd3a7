// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"time"

	"gompi/internal/rollcall"
	"gompi/internal/wire"
)

// status is the first byte of a reply.
type status uint8

const (
	stOK       status = iota // body: what the request asked for
	stGone                   // process, text
	stNotFound               // text
	stEnding                 // text
	stRefused                // text
)

// replyMsg answers a request: what it asked for, or an error.
type replyMsg struct {
	status status
	proc   wire.ProcID // stGone
	text   string      // all but stOK
	body   []byte      // stOK
}

func (*replyMsg) kind() kind { return kReply }

func (m *replyMsg) put(e *enc) {
	e.u8(uint8(m.status))
	switch m.status {
	case stOK:
		e.bytes(m.body)
		return
	case stGone:
		e.proc(m.proc)
	}
	e.str(clip(m.text, maxText))
}

func (m *replyMsg) get(d *dec) {
	m.status = status(d.u8())
	switch m.status {
	case stOK:
		m.body = d.bytes(maxBody)
		return
	case stGone:
		m.proc = d.proc()
	case stNotFound, stEnding, stRefused:
	default:
		d.fail("unknown status %d", m.status)
	}
	m.text = d.str(maxText)
}

// failure turns err into a reply.
func failure(err error) *replyMsg {
	var gone *GoneError
	switch {
	case errors.As(err, &gone):
		return &replyMsg{status: stGone, proc: gone.Proc, text: gone.How}
	case errors.Is(err, ErrNotFound):
		return &replyMsg{status: stNotFound, text: detail(err, ErrNotFound)}
	case errors.Is(err, ErrEnding):
		return &replyMsg{status: stEnding, text: detail(err, ErrEnding)}
	}
	return &replyMsg{status: stRefused, text: detail(err, ErrRefused)}
}

// withDetail is a sentinel with its particulars, which travel without it.
type withDetail struct {
	sentinel error
	text     string
}

func (e *withDetail) Error() string { return fmt.Sprintf("%v: %s", e.sentinel, e.text) }
func (e *withDetail) Unwrap() error { return e.sentinel }

func detail(err, sentinel error) string {
	var d *withDetail
	if errors.As(err, &d) && d.sentinel == sentinel {
		return d.text
	}
	return err.Error()
}

func refused(format string, args ...any) error {
	return &withDetail{ErrRefused, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &withDetail{ErrNotFound, fmt.Sprintf(format, args...)}
}

// err is the opposite of failure; nil for stOK.
func (m *replyMsg) err() error {
	switch m.status {
	case stOK:
		return nil
	case stGone:
		return &GoneError{Proc: m.proc, How: m.text}
	case stNotFound:
		return &withDetail{ErrNotFound, m.text}
	case stEnding:
		return &withDetail{ErrEnding, m.text}
	}
	return &withDetail{ErrRefused, m.text}
}

// The bodies of replies are written and read like messages; they have no kind
// of their own.

// contactBody is a wire.Contact without its descriptors.
type contactBody struct{ c wire.Contact }

func (*contactBody) kind() kind { return kReply }

func (m *contactBody) put(e *enc) {
	e.proc(m.c.Proc)
	e.u32(m.c.Host)
	e.flag(m.c.SameHost)
	e.i64(int64(m.c.PID))
	e.strs(m.c.Addrs)
}

func (m *contactBody) get(d *dec) {
	m.c = wire.Contact{Proc: d.proc(), Host: d.u32(), SameHost: d.flag(), PID: d.num(1 << 30), Segment: -1, Bell: -1}
	m.c.Addrs = d.strs(MaxAddrs, maxAddr)
}

type setBody struct{ s wire.Set }

func (*setBody) kind() kind   { return kReply }
func (m *setBody) put(e *enc) { e.set(m.s) }
func (m *setBody) get(d *dec) { m.s = d.set() }

// partMsg is a piece of a tool's answer: one process.
type partMsg struct{ r StackReport }

func (*partMsg) kind() kind { return kPart }

func (m *partMsg) put(e *enc) {
	r := &m.r
	e.proc(r.Proc)
	e.i64(int64(r.Rank))
	e.i64(int64(r.Size))
	e.u32(r.World)
	e.i64(int64(r.PID))
	e.u8(uint8(r.State))
	e.str(clip(r.How, maxText))
	e.flag(r.Answered)
	e.u32(uint32(len(r.Calls)))
	for i := range r.Calls {
		putCall(e, &r.Calls[i])
	}
	e.bytes(r.Queues)
	e.bytes(r.Stacks)
}

func (m *partMsg) get(d *dec) {
	r := &m.r
	r.Proc = d.proc()
	r.Rank = d.num(maxMembers)
	r.Size = d.num(maxMembers)
	r.World = d.u32()
	r.PID = d.num(1 << 30)
	r.State = ProcState(d.u8())
	if d.err == nil && (r.State < Starting || r.State > Exited) {
		d.fail("unknown state %d", r.State)
	}
	r.How = d.str(maxText)
	r.Answered = d.flag()
	if n := d.count(maxCalls, minCall); n > 0 {
		r.Calls = make([]rollcall.Entry, n)
	}
	for i := range r.Calls {
		getCall(d, &r.Calls[i])
	}
	r.Queues, r.Stacks = d.bytes(MaxReport), d.bytes(MaxReport)
}

// maxCalls is more than a roll call has slots; minCall the bytes of a call
// with empty texts.
const (
	maxCalls = 1 << 10
	minCall  = 84
)

func putCall(e *enc, c *rollcall.Entry) {
	e.str(c.Op)
	e.proc(c.Comm.Creator)
	e.u32(c.Comm.Serial)
	e.i64(int64(c.CommSize))
	e.i64(int64(c.Rank))
	e.i64(int64(c.Peer))
	e.proc(c.PeerProc)
	e.i64(int64(c.Tag))
	e.i64(c.Bytes)
	e.i64(c.Since.UnixNano())
	e.str(c.Caller)
}

func getCall(d *dec, c *rollcall.Entry) {
	c.Op = d.str(rollcall.MaxOp)
	c.Comm = wire.ContextID{Creator: d.proc(), Serial: d.u32()}
	c.CommSize, c.Rank, c.Peer = int(d.i64()), int(d.i64()), int(d.i64())
	c.PeerProc = d.proc()
	c.Tag, c.Bytes = int(d.i64()), d.i64()
	c.Since = time.Unix(0, d.i64())
	c.Caller = d.str(rollcall.MaxCaller)
}
