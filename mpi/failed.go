// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"sync"

	"gompi/internal/calls"
)

const opSyncFailed calls.Name = "SyncFailed"

// SyncFailed waits until this process knows of every failure that the launcher
// has seen when it is called, and returns Failed. A call that fails with
// ErrProcFailed has told of one: others may have died with it. Survivors that
// make a communicator of the living (CommFromGroup) need not agree before: who
// has heard of fewer failures fails in it, and tries again. Local; it gives up
// when the context of c ends.
func (c *Comm) SyncFailed() ([]int, error) {
	if err := c.exists(opSyncFailed); err != nil {
		return nil, err
	}
	p := c.core.proc
	user := c.user
	if user == nil {
		user = context.Background()
	}
	if err := p.syncs.wait(p, user); err != nil {
		class := ErrCancelled
		if user.Err() == nil {
			class = ErrFinalized
		}
		return nil, c.argError(class, opSyncFailed, ProcNull, -1, -1, -1, "", err)
	}
	if f := p.e.Mourned(c.core.ctx, opSyncFailed, c.user); f != nil {
		return nil, c.errorOf(opSyncFailed, ProcNull, -1, f)
	}
	return c.Failed(), nil
}

// syncs are the questions whether everything was told.
type syncs struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]chan struct{}
}

// wait asks, and waits for the answer among the events.
func (s *syncs) wait(p *Process, user context.Context) error {
	s.mu.Lock()
	s.last++
	id, told := s.last, make(chan struct{})
	if s.open == nil {
		s.open = map[uint64]chan struct{}{}
	}
	s.open[id] = told
	s.mu.Unlock()
	defer s.answer(id)
	if err := p.ctl.Sync(id); err != nil {
		return err
	}
	select {
	case <-told:
		return nil
	case <-user.Done():
		return context.Cause(user)
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// answer ends a wait, if it goes on.
func (s *syncs) answer(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told := s.open[id]; told != nil {
		delete(s.open, id)
		close(told)
	}
}
