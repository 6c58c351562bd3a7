// SPDX-License-Identifier: Apache-2.0

package rma

import "gompi/mpi"

// ErrorHandler is called for each error of a call on a window, before the call
// returns it; for that of a request by the call that completes it. The window
// is the one that the call which made it returned. nil is the default: the error is only returned. MPI 4.1 section 9.3.2.
type ErrorHandler func(w *Window, err error)

// ErrorsAreFatal is the error handler that ends the job with the error's text.
func ErrorsAreFatal(w *Window, err error) { mpi.ErrorsAreFatal(w.core.comm, err) }

// SetErrorHandler makes h the error handler of w on this process. Local.
// MPI 4.1 section 9.3.2.
func (w *Window) SetErrorHandler(h ErrorHandler) {
	if h == nil {
		w.core.comm.SetErrorHandler(nil)
		w.core.handler.Store(nil)
		return
	}
	w.core.handler.Store(&h)
	w.core.comm.SetErrorHandler(func(_ *mpi.Comm, err error) { h(&w.core.window, err) })
}

// ErrorHandler returns the error handler of w, nil if errors are only returned.
// Local. MPI 4.1 section 9.3.2.
func (w *Window) ErrorHandler() ErrorHandler {
	if h := w.core.handler.Load(); h != nil {
		return *h
	}
	return nil
}

// CallErrorHandler calls the error handler of w for an error of the program.
// MPI 4.1 section 9.5.
func (w *Window) CallErrorHandler(err error) { w.core.comm.CallErrorHandler(err) }
