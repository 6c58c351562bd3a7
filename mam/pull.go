// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"time"
)

// pull is the mover of method PULL: sources expose their memory, and targets read it without
// them. A newcomer reads constant data before its Ready, a survivor before its Release; a
// leaver does nothing for it. Variable data is read from snapshots (precopy.go), or, as a
// whole, at the commit.
type pull struct {
	rc *reconfiguration
	// open has read the snapshots of the sources, and stays open for the delta; nil: nothing was
	// read.
	open *reader
}

func newPull(rc *reconfiguration) mover { return &pull{rc: rc} }

func (m *pull) ready(ctx context.Context) error { return m.readConstant(ctx) }

func (m *pull) early(ctx context.Context) error {
	rc := m.rc
	if rc.old >= 0 && rc.new >= 0 { // a newcomer has read it before its Ready
		if err := m.readConstant(ctx); err != nil {
			return err
		}
	}
	if !rc.preCopies() {
		return nil
	}
	return m.preCopy(ctx)
}

func (m *pull) finish(list []*transfer) error { return m.rc.readAtCommit(list, m.open) }

func (m *pull) close() {
	if m.open != nil {
		m.open.close()
		m.open = nil
	}
}

// readConstant reads all constant data that this process is to have.
func (m *pull) readConstant(ctx context.Context) error {
	rc, start := m.rc, time.Now()
	r := rc.newReader(ctx, rc.transfers)
	defer r.close()
	r.limit = rc.newRateLimit(ctx)
	for i, x := range rc.transfers {
		if x.Mode != Constant || x.shared != nil {
			continue
		}
		if err := rc.allocate(x, r.limit); err != nil {
			return err
		}
		if x.target != nil { // else it stays what it is
			if err := r.fetchConstantOffers(rc.input, i); err != nil {
				return err
			}
			if err := r.readOwnPart(i); err != nil {
				return err
			}
		}
		x.done = true
	}
	rc.times.Async = rc.times.spent(Background, start)
	return nil
}
