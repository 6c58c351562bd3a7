// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
)

// Status is the first byte of a reply.
type Status uint8

const (
	StatusOK        Status = iota // body: what the request asked for
	StatusGone                    // process, text
	StatusNotFound                // text
	StatusEnding                  // text
	StatusRefused                 // text
	StatusSetGone                 // text
	StatusUndecided               // text
	StatusTooMany                 // text
)

// Reply answers a request: what it asked for, or an error.
type Reply struct {
	Status Status
	Proc   wire.ProcID // StatusGone
	Text   string      // all but StatusOK
	Body   []byte      // StatusOK
}

func (*Reply) kind() Kind { return KindReply }

func (m *Reply) put(e *enc) {
	e.u8(uint8(m.Status))
	switch m.Status {
	case StatusOK:
		e.bytes(m.Body)
		return
	case StatusGone:
		e.proc(m.Proc)
	}
	e.str(Clip(m.Text, MaxText))
}

func (m *Reply) get(d *dec) {
	m.Status = Status(d.u8())
	switch m.Status {
	case StatusOK:
		m.Body = d.bytes(MaxBody)
		return
	case StatusGone:
		m.Proc = d.proc()
	case StatusNotFound, StatusEnding, StatusRefused, StatusSetGone, StatusUndecided, StatusTooMany:
	default:
		d.fail("unknown status %d", m.Status)
	}
	m.Text = d.str(MaxText)
}

// Failure turns err into a reply.
func Failure(err error) *Reply {
	err = Hinted(err)
	var gone *GoneError
	switch {
	case errors.As(err, &gone):
		return &Reply{Status: StatusGone, Proc: gone.Proc, Text: gone.How}
	case errors.Is(err, ErrNotFound):
		return &Reply{Status: StatusNotFound, Text: detail(err, ErrNotFound)}
	case errors.Is(err, ErrSetGone):
		return &Reply{Status: StatusSetGone, Text: detail(err, ErrSetGone)}
	case errors.Is(err, ErrEnding):
		return &Reply{Status: StatusEnding, Text: detail(err, ErrEnding)}
	case errors.Is(err, ErrUndecided):
		return &Reply{Status: StatusUndecided, Text: detail(err, ErrUndecided)}
	case errors.Is(err, ErrTooMany):
		return &Reply{Status: StatusTooMany, Text: detail(err, ErrTooMany)}
	}
	return &Reply{Status: StatusRefused, Text: detail(err, ErrRefused)}
}

// withDetail is a sentinel with its particulars, which travel without it.
type withDetail struct {
	sentinel error
	text     string
}

func (e *withDetail) Error() string {
	if e.text == "" {
		return e.sentinel.Error()
	}
	return fmt.Sprintf("%v: %s", e.sentinel, e.text)
}
func (e *withDetail) Unwrap() error { return e.sentinel }

// detail is the text of err without the sentinel, which travels as a status.
func detail(err, sentinel error) string {
	var d *withDetail
	if errors.As(err, &d) && d.sentinel == sentinel {
		return without(d.text, sentinel)
	}
	return without(err.Error(), sentinel)
}

// without is a text without these sentinels at its beginning.
func without(text string, sentinels ...error) string {
	for again := true; again; {
		again = false
		for _, s := range sentinels {
			if rest, ok := strings.CutPrefix(text, s.Error()); ok && (rest == "" || strings.HasPrefix(rest, ": ")) {
				text, again = strings.TrimPrefix(rest, ": "), true
			}
		}
	}
	return text
}

// plain is an error that says less.
type plain struct {
	error
	text string
}

func (e *plain) Error() string { return e.text }
func (e *plain) Unwrap() error { return e.error }

// Without removes the texts of these sentinels from the beginning of the text of err, for a
// caller that puts the same words in front of it. errors.Is finds what it found before.
func Without(err error, sentinels ...error) error {
	if text := without(err.Error(), sentinels...); text != "" && text != err.Error() {
		return &plain{err, text}
	}
	return err
}

// FromText is an error that another head has written out; one without a sentinel is a
// refusal.
func FromText(text string) error {
	for _, s := range [...]error{ErrNotFound, ErrSetGone, ErrEnding, ErrUndecided, ErrRefused} {
		if rest := without(text, s); rest != text {
			return &withDetail{s, rest}
		}
	}
	return &withDetail{ErrRefused, text}
}

// Ending is the refusal of a job that is ending.
func Ending(why string) error { return &withDetail{ErrEnding, why} }

// ErrUnwanted is the refusal of a process whose place was given up, and which will be
// killed.
var ErrUnwanted = Ending("this process is not wanted any more")

// NotIn is the refusal of a process that takes no part in the job.
func NotIn(p wire.ProcID, s ProcState) error {
	if s == Exited { // as its agent or head has it; it asks
		return ErrUnwanted
	}
	return Refused("process %v is %v", p, s)
}

// Refused is a refusal with its reason.
func Refused(format string, args ...any) error {
	return &withDetail{ErrRefused, fmt.Sprintf(format, args...)}
}

// TooMany says which limit of the protocol a request is beyond.
func TooMany(format string, args ...any) error {
	return &withDetail{ErrTooMany, fmt.Sprintf(format, args...)}
}

// NotDecided says for what change a request has waited too long.
func NotDecided(format string, args ...any) error {
	return &withDetail{ErrUndecided, fmt.Sprintf(format, args...)}
}

// NotFound says what does not exist.
func NotFound(format string, args ...any) error {
	return &withDetail{ErrNotFound, fmt.Sprintf(format, args...)}
}

// SetGone says which process set there is no more.
func SetGone(format string, args ...any) error {
	return &withDetail{ErrSetGone, fmt.Sprintf(format, args...)}
}

// Err is the opposite of Failure; nil for StatusOK.
func (m *Reply) Err() error {
	switch m.Status {
	case StatusOK:
		return nil
	case StatusGone:
		return &GoneError{Proc: m.Proc, How: m.Text}
	case StatusNotFound:
		return &withDetail{ErrNotFound, m.Text}
	case StatusSetGone:
		return &withDetail{ErrSetGone, m.Text}
	case StatusEnding:
		return Ending(m.Text)
	case StatusUndecided:
		return &withDetail{ErrUndecided, m.Text}
	case StatusTooMany:
		return &withDetail{ErrTooMany, m.Text}
	}
	return &withDetail{ErrRefused, m.Text}
}

// ByeError is the head's reason to end a connection.
func ByeError(body []byte) error {
	m := Text{Kind: KindBye}
	if err := Decode(&m, body); err != nil {
		return err
	}
	return FromText(m.Text)
}

// The bodies of replies are written and read like messages; they have no kind
// of their own.

// ContactBody is a wire.Contact without its descriptors.
type ContactBody struct{ C wire.Contact }

func (*ContactBody) kind() Kind { return KindReply }

func (m *ContactBody) put(e *enc) {
	e.proc(m.C.Proc)
	e.u32(m.C.Host)
	e.flag(m.C.SameHost)
	e.i64(int64(m.C.PID))
	e.strs(m.C.Addrs)
}

func (m *ContactBody) get(d *dec) {
	m.C = wire.Contact{Proc: d.proc(), Host: d.u32(), SameHost: d.flag(), PID: d.num(1 << 30), Segment: -1, Bell: -1}
	m.C.Addrs = d.strs(MaxAddrs, MaxAddr)
}

// SetBody is a process set.
type SetBody struct{ S wire.Set }

func (*SetBody) kind() Kind   { return KindReply }
func (m *SetBody) put(e *enc) { e.set(m.S) }
func (m *SetBody) get(d *dec) { m.S = d.set() }

// CommonBody is the answer to a Common, where the file is needed with it.
type CommonBody struct{ X wire.Extent }

func (*CommonBody) kind() Kind { return KindReply }
func (m *CommonBody) put(e *enc) {
	e.u32(m.X.Arena)
	e.i64(m.X.Total)
	e.i64(m.X.Off)
	e.i64(m.X.Bytes)
}
func (m *CommonBody) get(d *dec) {
	m.X = wire.Extent{Arena: d.u32(), Total: d.i64(), Off: d.i64(), Bytes: d.i64(), File: -1}
}

// ValueBody is the answer to a Get.
type ValueBody struct{ Val []byte }

func (*ValueBody) kind() Kind   { return KindReply }
func (m *ValueBody) put(e *enc) { e.bytes(m.Val) }
func (m *ValueBody) get(d *dec) { m.Val = d.bytes(MaxValue) }

// A StackReport is a piece of a tool's answer.

func (*StackReport) kind() Kind { return KindPart }

func (r *StackReport) put(e *enc) {
	e.proc(r.Proc)
	e.i64(int64(r.Rank))
	e.i64(int64(r.Size))
	e.str(r.Name)
	e.u32(r.World)
	e.i64(int64(r.PID))
	e.u8(uint8(r.State))
	e.str(Clip(r.How, MaxText))
	e.flag(r.Answered)
	e.str(Clip(r.Silent, MaxText))
	e.str(r.Host)
	e.numbers(r.Sets)
	e.used(&r.Used)
	putCalls(e, r.Calls)
	e.bytes(r.Queues)
	e.bytes(r.Stacks)
}

func (r *StackReport) get(d *dec) {
	r.Proc = d.proc()
	r.Rank = d.num(MaxMembers)
	r.Size = d.num(MaxMembers)
	r.Name = d.str(MaxName)
	r.World = d.u32()
	r.PID = d.num(1 << 30)
	r.State = ProcState(d.u8())
	if d.err == nil && (r.State < Starting || r.State > Spare) {
		d.fail("unknown state %d", r.State)
	}
	r.How = d.str(MaxText)
	r.Answered = d.flag()
	r.Silent = d.str(MaxText)
	r.Host, r.Sets = d.str(MaxName), d.numbers(MaxSetsOf)
	r.Used = d.used()
	r.Calls = getCalls(d)
	r.Queues, r.Stacks = d.bytes(MaxReport), d.bytes(MaxReport)
}

// MaxSetsOf is how many sets of a process are told.
const MaxSetsOf = 8

func (e *enc) used(u *Used) {
	e.i64(int64(u.At))
	e.i64(int64(u.CPU))
	e.i64(u.Memory)
	for _, n := range u.Numbers() {
		e.u64(*n)
	}
}

func (d *dec) used() (u Used) {
	u.At, u.CPU, u.Memory = d.duration(), d.duration(), d.i64()
	for _, n := range u.Numbers() {
		*n = d.u64()
	}
	if d.err == nil && u.Memory < 0 {
		d.fail("%d bytes of memory", u.Memory)
	}
	return u
}

// maxCalls is more than a roll call has slots; minCall the bytes of a call
// with empty texts, maxCall those of the longest.
const (
	maxCalls = 1 << 10
	minCall  = 102
	maxCall  = minCall + callreg.MaxOp + callreg.MaxCaller + callreg.MaxInstead
)

func putCalls(e *enc, calls []callreg.Entry) {
	calls = calls[:min(len(calls), maxCalls)]
	e.u32(uint32(len(calls)))
	for i := range calls {
		putCall(e, &calls[i])
	}
}

func getCalls(d *dec) []callreg.Entry {
	n := d.count(maxCalls, minCall)
	if n == 0 {
		return nil
	}
	calls := make([]callreg.Entry, n)
	for i := range calls {
		getCall(d, &calls[i])
	}
	return calls
}

func putCall(e *enc, c *callreg.Entry) {
	e.str(Clip(c.Op, callreg.MaxOp))
	e.proc(c.Comm.Creator)
	e.u32(c.Comm.Serial)
	e.i64(int64(c.CommSize))
	e.i64(int64(c.Rank))
	e.i64(int64(c.Peer))
	e.proc(c.PeerProc)
	e.i64(int64(c.Tag))
	e.i64(c.Bytes)
	e.i64(c.Since.UnixNano())
	e.str(c.Caller[max(0, len(c.Caller)-callreg.MaxCaller):])
	e.proc(c.Holder)
	e.flag(c.InLine)
	e.flag(c.Running)
	e.str(Clip(c.Instead, callreg.MaxInstead))
}

func getCall(d *dec, c *callreg.Entry) {
	c.Op = d.str(callreg.MaxOp)
	c.Comm = wire.ContextID{Creator: d.proc(), Serial: d.u32()}
	c.CommSize, c.Rank, c.Peer = int(d.i64()), int(d.i64()), int(d.i64())
	c.PeerProc = d.proc()
	c.Tag, c.Bytes = int(d.i64()), d.i64()
	c.Since = time.Unix(0, d.i64())
	c.Caller = d.str(callreg.MaxCaller)
	c.Holder, c.InLine, c.Running = d.proc(), d.flag(), d.flag()
	c.Instead = d.str(callreg.MaxInstead)
}
