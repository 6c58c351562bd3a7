// SPDX-License-Identifier: Apache-2.0

package sessions

import "gompi/mpi"

// ErrorHandler is called for each error of a call on a session, or on a Store of it,
// before the call returns it. It may call the library. nil is the default: the error
// is only returned (MPI_ERRORS_RETURN). It sees the errors of mpi.CommFromGroup and
// mpi.IntercommCreateFromGroups of the session's groups as well, and of groups made of
// these, after the handler that the group has of its own (mpi.Group.WithErrorHandler).
// Errors on communicators that were made are those communicators' own: see
// mpi.ErrorHandler. MPI 4.1 sections 7.4.2 and 9.3.4.
type ErrorHandler func(s *Session, err error)

// ErrorsAreFatal is the error handler that ends the job with the error's text
// (MPI_ERRORS_ARE_FATAL).
func ErrorsAreFatal(s *Session, err error) { s.process().Abort(1, err.Error()) }

// WithErrorHandler gives a session its first error handler.
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

// ErrorHandler is the error handler of the session, nil if errors are only returned.
// Local. MPI 4.1 section 9.3.4.
func (s *Session) ErrorHandler() ErrorHandler {
	if h := s.handler.Load(); h != nil {
		return *h
	}
	return nil
}

// CallErrorHandler calls the error handler of the session for an error of the program.
// MPI 4.1 section 9.5.
func (s *Session) CallErrorHandler(err error) {
	if h := s.ErrorHandler(); h != nil {
		h(s, err)
	}
}

// raise shows an error that a call is about to return to the error handler. The caller
// holds no lock.
func (s *Session) raise(err *error) {
	if *err != nil {
		s.CallErrorHandler(*err)
	}
}

// raised is fail for a call that has no lock.
func (s *Session) raised(class mpi.Class, op string, err error) error {
	err = s.fail(class, op, err)
	s.raise(&err)
	return err
}
