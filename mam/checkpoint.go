// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions"
)

// Checkpoint is the one call of each iteration. All ranks make it with the same completion. It
// counts its calls, asks for the change that SetTarget wants, and returns the state of a change.
//
// A change is delivered in one iteration on all members. The Checkpoint of that iteration moves
// the data, runs the user phase and commits. Its state is then Completed: Comm and all variables
// are new, and Iteration is one more than that of the call, on newcomers too. With Check,
// Checkpoint waits for nobody unless a change is delivered. With Wait it waits until the change
// that is coming is over; then all members must call it with Wait in that iteration.
//
// Errors:
//   - ErrArg: another completion. The call does not count, and others that wait do so until it
//     is made again.
//   - ErrLeaving: this process leaves; its main function returns the error.
//   - The error of a request that SetTarget has made, if it is refused. The call counts.
//   - Any other error of a change that was delivered is of this process's part in it: its user
//     function, a variable, its memory. If the state is NotStarted the change was rolled back
//     on all ranks at once, the others see that without an error, and this process may go on.
//     Otherwise it cannot go on.
//
// A change that was rolled back is no error: the state is NotStarted, and everything is what it
// was. Collective over Comm, with the same completion on all.
//
// MAM_Checkpoint of MaM.
func (m *Module) Checkpoint(how Completion) (State, error) {
	const op = "Checkpoint"
	if err := m.open(op); err != nil {
		return Unreserved, err
	}
	if how > Wait {
		return m.State(), m.refuse(op, mpi.ErrArg, fmt.Errorf("completion %d", how))
	}
	c, err := m.checkIn(how)
	if err != nil {
		return m.State(), err
	}
	if c != nil {
		if m.current, err = m.deliver(c); err != nil {
			return m.fail(c, err)
		}
	}
	if m.current == nil {
		return m.State(), nil
	}
	return m.advance(how)
}

// checkIn is the part of a Checkpoint before a change is delivered. The program does not compute in
// it, and no user function is called, so snapshots may be taken. Other ranks do not know of an error of
// publishAndRequest. So this process takes part in what all do, and returns the error once no
// change is delivered to it.
func (m *Module) checkIn(how Completion) (c *sessions.Change, err error) {
	m.computing.Unlock()
	defer m.computing.Lock()
	m.deferred = errors.Join(m.deferred, m.publishAndRequest())
	defer func() {
		if c == nil && m.current == nil {
			err, m.deferred = errors.Join(err, m.deferred), nil
		}
	}()
	if err := m.awaitNewcomers(); err != nil {
		return nil, err
	}
	if t := m.polled.Load(); t != nil {
		t.poll()
	}
	number := m.iteration + m.waited
	if c, err = m.w.Check(number); err != nil {
		return nil, err
	}
	m.calls, m.iteration = m.calls+1, m.iteration+1
	switch {
	case c != nil || m.current != nil:
		return c, nil
	case how == Wait:
		return m.awaitChange(number)
	}
	return nil, m.takePrepareErr()
}

var errMixedCompletion = errors.New("in one iteration some ranks have called Checkpoint with Wait, and some with Check")

// advance does what is left of a change that was delivered.
func (m *Module) advance(how Completion) (State, error) {
	rc := m.current
	for {
		over, err := rc.userPhase()
		if err != nil {
			return m.fail(rc.change, err)
		}
		if over {
			break
		}
		if how == Check {
			return UserPending, nil
		}
	}
	if err := rc.finish(); err != nil {
		return m.fail(rc.change, err)
	}
	return m.commit()
}

// publishAndRequest publishes the registrations and settings made until now, for changes from now
// on, and submits the request of SetTarget.
func (m *Module) publishAndRequest() error {
	if !m.published {
		if err := m.publish(); err != nil {
			return err
		}
	}
	if m.comm.Rank() == 0 {
		if err := m.submitRequest(); err != nil {
			return err
		}
	} else {
		m.wanted = 0
	}
	if !m.published { // only this goroutine writes it
		m.openGate()
	}
	return nil
}

// takePrepareErr returns, once, why a change could not be prepared. It is called after the
// collective calls of a Checkpoint, because other ranks may have no error.
func (m *Module) takePrepareErr() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.prepareErr
	m.prepareErr = nil
	return err
}

// publish publishes the registrations: rank 0 puts the registry into the store of the set, and each
// rank publishes its constant data.
func (m *Module) publish() error {
	store, err := m.s.Store(m.set)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.inputs.Hosts = hostCount(m.comm)
	m.mu.Unlock()
	if m.comm.Rank() == 0 {
		b, err := m.registry(m.arrays).encode()
		if err != nil {
			return m.refuse("Checkpoint", mpi.ErrArg, err)
		}
		if err := putVolumes(b, store.Put); err != nil {
			return err
		}
	}
	m.printNotInPlace()
	return m.publishConstant(store)
}
