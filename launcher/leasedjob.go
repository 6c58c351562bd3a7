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

// leasedJob is the lease of a job that is handed to a head of several jobs (gompirun
// --to). Only its slots differ from those of another job: docs/design/041-leases.md.
type leasedJob struct {
	name  string
	col   *rm.COL
	start int                 // number of processes to begin with; 0: all slots
	slots int                 // --slots
	bound func(*rm.COL) error // limits a COL of the program by the command line

	job   wire.JobID
	lease *pool.Lease
	total int // slots of the head
	fd    int // descriptor of the lease, for the guardian
}

// Time for a job to end when its head does, and the delay before a line on a terminal says
// that it waits.
const (
	endGrace = time.Second
	sayWaits = time.Second
)

// begin waits for the slots of a job, and sets the number of processes with which it
// begins.
func (t *leasedJob) begin(o *options) error {
	var err error
	if t.job, err = newJobID(); err != nil {
		return err
	}
	// A job that names ranks (several programs, --pset, --stdin RANK above 0) cannot begin
	// with another number of processes.
	moldable := len(o.Apps) == 1 && len(o.changes.psets) == 0 && o.Stdin <= 0
	col := *t.col
	if !moldable {
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
	d := newDriver("--to "+t.name, l)
	d.leased, d.waits, d.bound, d.close = true, true, t.bound, l.Close
	d.col = t.col
	o.changes.driver = d
	return nil
}

// serve connects the lease with the control plane of the job, and ends the job when the
// lease is lost.
func (t *leasedJob) serve(sup *supervisor.Supervisor, server *server.Server, d *driver) {
	t.lease.Serve(d.wake, func(total int) { server.Slots(atMost(t.slots, total)) })
	go func() {
		<-t.lease.Lost()
		sup.EndFor(t.lease.Why(), endGrace)
	}()
}
