// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/internal/base/fault"
)

// ErrorHandler is called for each error of a call on a communicator, before
// the call returns it; for that of a nonblocking operation by the call that
// completes it. It may call the library. nil is the default: the error is only
// returned (MPI_ERRORS_RETURN). MPI 4.1 section 9.3.
type ErrorHandler func(c *Comm, err error)

// ErrorsAreFatal is the error handler that ends the job with the error's text
// (MPI_ERRORS_ARE_FATAL).
func ErrorsAreFatal(c *Comm, err error) { c.core.Proc.Abort(1, err.Error()) }

const opSetErrorHandler fault.Call = "SetErrorHandler"

// SetErrorHandler makes h the error handler of c on this process. Communicators
// made from c afterwards inherit it. Local. MPI 4.1 section 9.3.1.
func (c *Comm) SetErrorHandler(h ErrorHandler) {
	if h == nil {
		c.of(opSetErrorHandler).handler.Store(nil)
		return
	}
	c.of(opSetErrorHandler).handler.Store(&h)
}

// ErrorHandler returns the error handler of c, nil if errors are only
// returned. Local. MPI 4.1 section 9.3.1.
func (c *Comm) ErrorHandler() ErrorHandler {
	if h := c.of("ErrorHandler").handler.Load(); h != nil {
		return *h
	}
	return nil
}

// CallErrorHandler calls the error handler of c for an error of the program.
// MPI 4.1 section 9.5.
func (c *Comm) CallErrorHandler(err error) {
	if h := c.ErrorHandler(); h != nil {
		h(c, err)
	}
}

// raise shows an error that a call is about to return to the error handler; nil
// is none. The caller holds no lock. c may be nil.
func (c *Comm) raise(err *Error) error {
	if err == nil {
		return nil
	}
	if c != nil {
		c.CallErrorHandler(err)
	}
	return err
}
