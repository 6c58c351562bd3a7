// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"

	"gompi/internal/base/wire"
)

// Errors of the control plane. Test with errors.Is.
var (
	// ErrLost: the connection to the head has ended; no call will work again.
	ErrLost = errors.New("connection to gompirun is lost")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("control connection is closed")
	// ErrNotFound: no such key, set or process.
	ErrNotFound = errors.New("not found")
	// ErrSetGone: nobody holds the process set any more.
	ErrSetGone = errors.New("the process set is gone")
	// ErrEnding: the job is ending.
	ErrEnding = errors.New("job is ending")
	// ErrUndecided: a change of process sets was not decided in time, for which the
	// request had to wait.
	ErrUndecided = errors.New("a change of the process set is not decided")
	// ErrTooMany: the request is for more than the limits of the protocol allow.
	ErrTooMany = errors.New("more than allowed")
	// ErrRefused: the head refused the request; the text says why.
	ErrRefused = errors.New("refused by gompirun")
)

// GoneError tells that a process needed for the call has left or died.
type GoneError struct {
	Proc wire.ProcID
	How  string // "finalized", "signal: killed", ...
}

func (e *GoneError) Error() string { return fmt.Sprintf("process %v is gone: %s", e.Proc, e.How) }

// ProtocolBroken is what who breaks the protocol is told.
func ProtocolBroken(err error) string { return "protocol error: " + err.Error() }
