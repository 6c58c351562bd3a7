// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

// Session is one use of the job by a part of a program: the process sets that it has
// seen, and the communicators that it has made of them. A process may have any number of
// independent sessions. Any goroutine may call its methods. MPI 4.1 section 11.3.
type Session struct {
	ctx  context.Context // of Open
	proc *mpi.Process
	reg  *registry

	mu     sync.Mutex
	closed bool
	names  map[string]*setRef // sets that were looked up, by each of their names
	main   *setRef            // the main set at its last lookup; nil: not looked up
	list   []string           // the sets by number
	since  uint64             // news after this are not in list
	comms  []*mpi.Comm

	retention retention // of sets of past changes

	space   mpi.SendBuffer
	handler atomic.Pointer[ErrorHandler]
	hints   *mpi.Info // nil: none were given

	dpp dppState
}

// Option changes how a session is opened.
type Option func(*Session)

// Open begins a session of the process that ctx carries: that of mpi.Main, or of package
// mpitest. With another ctx it is the process of the program, which joins the job if it has
// not yet; the session holds that process. Open may be called any number of times, before,
// during and after the use of the world. The thread level is always MPI_THREAD_MULTIPLE.
// Close must follow. Local. MPI 4.1 section 11.3.1.
func Open(ctx context.Context, opts ...Option) (*Session, error) {
	p, err := mpi.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	s := &Session{ctx: ctx, proc: p, reg: registryOf(p.Core().Process()), names: map[string]*setRef{}, space: p.NewSendBuffer()}
	for _, o := range opts {
		o(s)
	}
	return s, nil
}

// Close ends the session. It disconnects the communicators that were made from it and not
// freed. So it is collective over these, and may wait until their members disconnect or
// end, or until the context of Open ends. It releases the session's sets; they live on
// where others hold them.
//
// Errors: ErrSession if the session was closed before; mpi.ErrCancelled when the context
// of Open ends, while the operations go on. MPI 4.1 section 11.3.1.
func (s *Session) Close() (err error) {
	defer s.raise(&err)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return s.fail(mpi.ErrSession, "Close", errClosed)
	}
	s.closed = true
	comms := s.comms
	s.comms = nil
	s.mu.Unlock()
	if s.space.Attached() {
		_, err = s.space.Detach()
	}
	for _, c := range comms {
		if live(c) {
			err = errors.Join(err, c.WithContext(s.ctx).Disconnect())
		}
	}
	err = errors.Join(err, s.unfollow())
	s.mu.Lock()
	for _, h := range s.names {
		h.drop()
	}
	if s.main != nil {
		s.main.drop()
	}
	s.names, s.main = nil, nil
	s.mu.Unlock()
	return errors.Join(err, s.proc.Release(s.ctx))
}

// Process returns the process of the session. Local.
func (s *Session) Process() *mpi.Process { return s.proc }

var errClosed = errors.New("the session was closed")

// fail returns the error of a call of s.
func (s *Session) fail(class mpi.Class, op string, err error) error {
	return newError(class, op, err)
}

// open returns an error if s was closed; mu is held.
func (s *Session) open(op string) error {
	if s.closed {
		return s.fail(mpi.ErrSession, op, errClosed)
	}
	return nil
}

func (s *Session) process() *core.Process { return s.proc.Core().Process() }

// find looks a set up by name, except the empty set, and holds it until Close. It looks
// the main set up each time, as that may have changed; mu is held.
func (s *Session) find(op, name string) (*setRef, error) {
	if err := s.open(op); err != nil {
		return nil, err
	}
	if h := s.names[name]; h != nil {
		if why := s.process().Undone(h.over); why != nil {
			return nil, s.fail(mpi.ErrSetGone, op, why)
		}
		s.retention.touch(h.set.Number)
		return h, nil
	}
	h, err := s.reg.hold(s.ctx, name)
	switch {
	case err != nil:
		class := classOf(err)
		if class == mpi.ErrSet && s.seen(name) {
			class = mpi.ErrSetGone
		}
		return nil, s.fail(class, op, detailOf(err))
	case name == protocol.MainURI:
		if s.main != nil {
			s.main.drop()
		}
		s.main = h
	default:
		s.names[name] = h
	}
	return h, nil
}

// Release ends the session's hold on a set before Close. The set is gone then, unless
// others hold it. A name that was not looked up is not an error. Local. Error: ErrSession.
func (s *Session) Release(name string) (err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open("Release"); err != nil {
		return err
	}
	name = canonical(name)
	if h := s.names[name]; h != nil {
		delete(s.names, name)
		h.drop()
	}
	return nil
}
