// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"slices"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// fail ends a change that fails on this process. The others are told at once that it takes no
// part, and the change is rolled back. The error is nil if the reason is the end of another
// process, or if the change was rolled back before.
func (m *Module) fail(c *sessions.Change, err error) (State, error) {
	byUser := false
	if rc := m.current; rc != nil {
		byUser = rc.userFailed
		rc.close()
		m.current = nil
	}
	if c.Role == sessions.Joining {
		return NotStarted, m.failNewcomer(c, err, byUser)
	}
	if errors.Is(err, mpi.ErrLeaving) {
		return NotStarted, err
	}
	others := causedByOthers(err)
	if committed, failed := m.decline(c, err, others); failed != nil || committed {
		return NotStarted, errors.Join(err, failed)
	}
	if _, decision := c.Commit(m.ctx); !errors.Is(decision, mpi.ErrRolledBack) {
		return NotStarted, errors.Join(err, decision)
	}
	m.releaseSets(c)
	_ = m.s.Release(c.Result)
	if others {
		err = nil
	}
	return NotStarted, err
}

// othersWait is how long a process whose error was caused by another one waits until the head
// rolls the change back for that one's reason, which is the better one.
const othersWait = 2 * time.Second

// decline tells the others that this process takes no part in a change, and waits for the
// decision. With others, the error was caused by another process, which is given time to say
// its reason.
func (m *Module) decline(c *sessions.Change, err error, others bool) (committed bool, failed error) {
	if others {
		ctx, cancel := context.WithTimeout(m.ctx, othersWait)
		committed, failed = c.Decided(ctx)
		if cancel(); failed == nil {
			return committed, nil
		}
	}
	_ = c.Decline(err) // without a connection it fails, and Decided reports that
	return c.Decided(m.ctx)
}

// causedByOthers reports whether a change fails on this process because another process has
// ended or has declined it, or because it was rolled back. Lost data is no such error: it is
// to be told.
func causedByOthers(err error) bool {
	if errors.As(err, new(*LostError)) {
		return false
	}
	return processGone(err) || errors.Is(err, mpi.ErrRolledBack) || errors.Is(err, errStaleRegistry) || errors.Is(err, errLateRollback)
}

// processGone reports whether a transfer has failed because a process is gone or has given
// up, so that the change will be rolled back: members keep their memory exposed until the
// decision. It also reports a change that was rolled back, and whose sets are gone.
func processGone(err error) bool {
	return slices.ContainsFunc([]error{mpi.ErrProcFailed, mpi.ErrRevoked, mpi.ErrClosed, mpi.ErrAborted, mpi.ErrSetGone}, func(class error) bool { return errors.Is(err, class) })
}

// failNewcomer is fail on a newcomer, which ends, so there is nothing to go on with. If the
// reason may be a roll-back, whose sets are gone then, it returns that. Otherwise it declines
// the change. byUser says that the user function has failed.
func (m *Module) failNewcomer(c *sessions.Change, err error, byUser bool) error {
	others := causedByOthers(err)
	switch {
	case errors.As(err, new(*LostError)), errors.Is(err, errNotEncoded): // all others know it
		return errors.Join(c.Decline(err), err)
	case errors.Is(err, mpi.ErrRolledBack):
		return err
	case byUser && !others, errors.Is(err, mpi.ErrMismatch), !errors.As(err, new(*mpi.Error)):
		_ = c.Decline(err) // this process ends
		return err
	}
	if committed, failed := m.decline(c, err, others); failed == nil && !committed {
		_, err = c.Commit(m.ctx)
	}
	return err
}
