// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/server"
	"gompi/internal/launch"
	"gompi/internal/launch/supervisor"
	"gompi/launcher/pool"
	"gompi/launcher/rm"
)

// tenant is what a job of another head has of it (gompirun --to). It is a job as any
// other, but for its slots: docs/design/041-leases.md.
type tenant struct {
	name  string
	col   *rm.COL
	start int                 // how many processes it asks to begin with; 0: all slots
	slots int                 // --slots
	bound func(*rm.COL) error // likewise, of what the program says later

	job   wire.JobID
	lease *pool.Lease
	total int // slots of the head
	fd    int // of the lease, for the guardian
}

// How long a job has to end when its head does, and after which time it is said on a
// terminal that it waits.
const (
	endGrace = time.Second
	sayWaits = time.Second
)

// begin waits for the slots of a job, and says with how many processes it begins.
func (t *tenant) begin(o *options) error {
	var err error
	if t.job, err = newJobID(); err != nil {
		return err
	}
	// A job whose ranks have programs or sets of their own cannot run with another number.
	moulds := len(o.Apps) == 1 && len(o.changes.psets) == 0 && o.Stdin <= 0
	col := *t.col
	if !moulds {
		col.Min = 0
	}
	wants := pool.Wants{Job: fmt.Sprintf("%016x", uint64(t.job)), Program: filepath.Base(o.Apps[0].Argv[0]), Start: t.start, Limit: o.Timeout, COL: &col}
	l, is, err := pool.Join(t.name, wants)
	if err != nil {
		return err
	}
	t.lease, t.total = l, is.Total
	if t.fd, err = l.Dup(); err != nil {
		return err
	}
	hint := time.AfterFunc(sayWaits, func() {
		if _, err := unix.IoctlGetTermios(2, unix.TCGETS); err == nil {
			launch.Say("waits for slots of head %s, behind %d others (gompictl queue %s)", t.name, is.Before, t.name)
		}
	})
	defer hint.Stop()
	n, err := l.Begin(context.Background())
	if err != nil {
		return err
	}
	if len(o.Apps) == 1 {
		o.Apps[0].NP = n
	} else if n != o.ranks() {
		return fmt.Errorf("head %s starts %d processes, not %d", t.name, n, o.ranks())
	}
	w := newSteward("--to "+t.name, l)
	w.leases, w.waits, w.bound, w.close = true, true, t.bound, l.Close
	w.col, w.newCOL = t.col, !moulds
	o.changes.steward = w
	return nil
}

// serve joins the lease with the job.
func (t *tenant) serve(h *supervisor.Supervisor, server *server.Server, w *steward) {
	t.lease.Serve(w.bell, func(total int) { server.Slots(atMost(t.slots, total)) })
	go func() {
		<-t.lease.Lost()
		h.EndFor(t.lease.Why(), endGrace)
	}()
}
