// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"strings"

	"gompi/internal/base/wire"
)

// Errors of the control plane. Test with errors.Is.
var (
	// ErrLost: the connection to the head has ended. No call will work again.
	ErrLost = errors.New("connection to gompirun is lost")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("control connection is closed")
	// ErrNotFound: no such key, set or process.
	ErrNotFound = errors.New("not found")
	// ErrSetGone: no process holds the set any more.
	ErrSetGone = errors.New("the process set is gone")
	// ErrEnding: the job is ending.
	ErrEnding = errors.New("job is ending")
	// ErrUndecided: the request had to wait for a change of process sets, which was not decided in
	// time.
	ErrUndecided = errors.New("a change of the process set is not decided")
	// ErrTooMany: the request is for more than the limits of the protocol allow.
	ErrTooMany = errors.New("more than allowed")
	// ErrRefused: the head refused the request; the text says why.
	ErrRefused = errors.New("refused by gompirun")
)

// GoneError is the error of a call that needs a process which has finalized or died.
type GoneError struct {
	Proc wire.ProcID
	How  string // "finalized", "signal: killed", ...
}

func (e *GoneError) Error() string { return fmt.Sprintf("process %v is gone: %s", e.Proc, e.How) }

// ProtocolBroken returns the reason that ends the connection of a peer that broke the protocol.
func ProtocolBroken(err error) string { return "protocol error: " + err.Error() }

// withDetail is a sentinel with its details. Only the details travel as text.
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

// detail returns the text of err without the sentinel, which travels as a status.
func detail(err, sentinel error) string {
	var d *withDetail
	if errors.As(err, &d) && d.sentinel == sentinel {
		return without(d.text, sentinel)
	}
	return without(err.Error(), sentinel)
}

// without returns a text without these sentinels at its beginning.
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

// plain is an error with a shorter text.
type plain struct {
	error
	text string
}

func (e *plain) Error() string { return e.text }
func (e *plain) Unwrap() error { return e.error }

// Without removes the texts of these sentinels from the beginning of the text of err, for a
// caller that puts the same words in front of it. errors.Is finds the same as before.
func Without(err error, sentinels ...error) error {
	if text := without(err.Error(), sentinels...); text != "" && text != err.Error() {
		return &plain{err, text}
	}
	return err
}

// FromText returns the error whose text another head has sent. A text without a sentinel is a
// refusal.
func FromText(text string) error {
	for _, s := range [...]error{ErrNotFound, ErrSetGone, ErrEnding, ErrUndecided, ErrRefused} {
		if rest := without(text, s); rest != text {
			return &withDetail{s, rest}
		}
	}
	return &withDetail{ErrRefused, text}
}

// Ending returns the refusal of a job that is ending.
func Ending(why string) error { return &withDetail{ErrEnding, why} }

// ErrUnwanted is the refusal of a process whose slot was given up. The process will be killed.
var ErrUnwanted = Ending("this process is not wanted any more")

// NotIn returns the refusal of a process that takes no part in the job.
func NotIn(p wire.ProcID, s ProcState) error {
	if s == Exited { // to the head, though it still asks
		return ErrUnwanted
	}
	return Refused("process %v is %v", p, s)
}

// Refused returns a refusal with its reason.
func Refused(format string, args ...any) error {
	return &withDetail{ErrRefused, fmt.Sprintf(format, args...)}
}

// TooMany returns the error of a request beyond a limit of the protocol.
func TooMany(format string, args ...any) error {
	return &withDetail{ErrTooMany, fmt.Sprintf(format, args...)}
}

// NotDecided returns the error of a request that has waited too long for a change.
func NotDecided(format string, args ...any) error {
	return &withDetail{ErrUndecided, fmt.Sprintf(format, args...)}
}

// NotFound returns the error of a name or a number that does not exist.
func NotFound(format string, args ...any) error {
	return &withDetail{ErrNotFound, fmt.Sprintf(format, args...)}
}

// SetGone returns the error of a process set that no process holds any more.
func SetGone(format string, args ...any) error {
	return &withDetail{ErrSetGone, fmt.Sprintf(format, args...)}
}
