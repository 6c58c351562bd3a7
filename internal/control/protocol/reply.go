// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"

	"gompi/internal/base/wire"
)

// Status is the first byte of a reply: what kind of error it is.
type Status uint8

const (
	StatusOK Status = iota
	StatusGone
	StatusNotFound
	StatusEnding
	StatusRefused
	StatusSetGone
	StatusUndecided
	StatusTooMany
)

// Reply answers a request, with what it asked for or with an error. A body is encoded and decoded
// as a message. Types of bodies have the kind of a Reply.
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
		e.bytes(m.Body, MaxBody)
		return
	case StatusGone:
		e.proc(m.Proc)
	}
	e.text(m.Text)
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
	m.Text = d.text()
}

// Failure returns the reply for an error.
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

// Err returns the error of a reply; nil for StatusOK. It is the opposite of Failure.
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

// ByeError returns the error that the body of a KindBye says.
func ByeError(body []byte) error {
	m := Text{Kind: KindBye}
	if err := Decode(&m, body); err != nil {
		return err
	}
	return FromText(m.Text)
}
