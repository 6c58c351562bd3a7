// SPDX-License-Identifier: Apache-2.0

package sessions

import "gompi/mpi"

// ErrorHandler is called with each error of a call on a session, or on a Store of it,
// before the call returns the error. It may call the library. The default is nil: calls
// only return their errors (MPI_ERRORS_RETURN).
//
// It also gets the errors of mpi.CommFromGroup and mpi.IntercommCreateFromGroups of the
// session's groups, and of groups made of these, after the handler of the group itself
// (mpi.Group.WithErrorHandler). Communicators have error handlers of their own: see
// mpi.ErrorHandler. MPI 4.1 sections 7.4.2 and 9.3.4.
type ErrorHandler func(s *Session, err error)

// ErrorsAreFatal is the error handler that aborts the job with the error's text
// (MPI_ERRORS_ARE_FATAL).
func ErrorsAreFatal(s *Session, err error) { s.process().Abort(1, err.Error()) }

// WithErrorHandler opens a session with an error handler.
func WithErrorHandler(h ErrorHandler) Option { return func(s *Session) { s.SetErrorHandler(h) } }

// SetErrorHandler makes h the error handler of the session. Local.
// MPI 4.1 section 9.3.4.
func (s *Session) SetErrorHandler(h ErrorHandler) {
	if h == nil {
		s.handler.Store(nil)
		return
	}
	s.handler.Store(&h)
}

// ErrorHandler returns the error handler of the session, nil if calls only return errors.
// Local. MPI 4.1 section 9.3.4.
func (s *Session) ErrorHandler() ErrorHandler {
	if h := s.handler.Load(); h != nil {
		return *h
	}
	return nil
}

// CallErrorHandler calls the error handler of the session with an error of the program.
// Local.
// MPI 4.1 section 9.5.
func (s *Session) CallErrorHandler(err error) {
	if h := s.ErrorHandler(); h != nil {
		h(s, err)
	}
}

// raise calls the error handler with an error that a call is about to return. The caller
// holds no lock.
func (s *Session) raise(err *error) {
	if *err != nil {
		s.CallErrorHandler(*err)
	}
}

// raised is fail and raise. The caller holds no lock.
func (s *Session) raised(class mpi.Class, op string, err error) error {
	err = s.fail(class, op, err)
	s.raise(&err)
	return err
}
