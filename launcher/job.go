// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/server"
	"gompi/internal/host/cgroup"
	"gompi/internal/launch"
	"gompi/internal/launch/spawner"
	"gompi/internal/launch/supervisor"
)

// newJob connects a supervisor, the spawner of this host, their control plane, and the
// driver of a resource manager, if there is one. With a starter the spawner is in another
// process, which may be on another host.
func newJob(line *options, start starter) (sup *supervisor.Supervisor, d *driver, err error) {
	o := &line.Options
	usable := cgroup.UsableCPUs()
	procs := maxProcs(o, usable)
	var secret [32]byte
	if err := random(secret[:]); err != nil {
		return nil, nil, err
	}
	job, err := newJobID()
	if err != nil {
		return nil, nil, err
	}
	streams := spawner.Streams{}
	if t := line.lease; t != nil {
		job, streams.Lease = t.job, t.fd
	}
	sup = supervisor.New(o, job)
	hosts := hostNames(len(line.fakeHosts))
	cfg := server.Config{
		JobConfig: server.JobConfig{
			Job: job, Secret: secret,
			Settings: o.Settings, FaultTolerant: o.FT, KillGrace: o.KillGrace,
			UsableCPUs: usable, MaxProcs: procs,
			Aborted: sup.Aborted, Joined: sup.Joined, Finalized: sup.Finalized,
		},
		Start:     sup.Spawn,
		Launch:    func(l *server.Launch) error { logGroup(sup, hosts, l); return sup.Launch(l.Procs) },
		Discard:   func(procs []wire.ProcID) { sup.Discard(procs, server.DiscardGrace) },
		Signal:    sup.SignalTo,
		Kept:      sup.Kept,
		Leave:     sup.Leave,
		Stay:      sup.Stay,
		Terminate: sup.Terminate,
		Main:      sup.Main,
	}
	line.changes.configure(&cfg.JobConfig)
	d = line.changes.driver
	if line.lease != nil {
		cfg.Slots = atMost(cfg.Slots, line.lease.total)
	}
	if path := line.changes.manager; path != "" {
		if d, err = newExternalDriver(path, job, line.changes.slots); err != nil {
			return nil, nil, err
		}
		defer func() {
			if err != nil {
				d.close()
			}
		}()
	}
	if d != nil {
		d.configure(&cfg, line.ranks())
	}
	cfg.HostNames = hosts
	if line.fakeHosts != nil {
		cfg.HostSlots = line.fakeHosts
		start = startFakeHost
	}
	if start != nil {
		server, err := connectAgents(sup, o, cfg, max(1, len(line.fakeHosts)), start)
		if err == nil && d != nil {
			go d.run(server)
		}
		return sup, d, err
	}
	a, err := spawner.New(o, job, procs, streams, func(ev launch.Event) { sup.HandleEvent(0, ev) }, sup.Post)
	if err != nil {
		return nil, nil, err
	}
	cfg.HostConfig = hostConfig(a, sup.Post)
	server, err := server.NewServer(cfg)
	if err != nil {
		return nil, nil, err
	}
	a.Serve(server)
	sup.Serve(server, a)
	if line.lease != nil {
		line.lease.serve(sup, server, d)
	}
	if d != nil {
		go d.run(server)
	}
	return sup, d, nil
}

// hostNames returns the names of the hosts: of this one, or of so many fake ones.
func hostNames(fakes int) []string {
	own, err := os.Hostname()
	if err != nil || own == "" {
		own = "localhost"
	}
	if fakes == 0 {
		return []string{own}
	}
	var list []string
	for i := range fakes {
		list = append(list, fmt.Sprintf("%s-%d", own, i))
	}
	return list
}

// logGroup prints with -v which group of newcomers starts, and after which other.
func logGroup(sup *supervisor.Supervisor, hosts []string, l *server.Launch) {
	g := l.Group
	if g == nil {
		return
	}
	after := "those there before"
	if g.By >= 0 {
		after = fmt.Sprintf("group %d", g.By)
	}
	sup.Note("operation %d: group %d of %d starts on host %s in step %d, of %d, after %s", g.Op, g.Group, g.Groups, hosts[g.Procs[0].Host], g.Step, len(g.Procs), after)
}

// hostConfig returns the callbacks of the control plane to a spawner, which run on the
// spawner's goroutine.
func hostConfig(a *spawner.Spawner, post func(func())) server.HostConfig {
	return server.HostConfig{
		Reap:    func(p wire.ProcID) { post(func() { a.Reap(p) }) },
		Lost:    func(p wire.ProcID) { post(func() { a.Lost(p) }) },
		Dropped: func(p wire.ProcID, why string) { post(func() { a.Dropped(p, why) }) },
	}
}

// maxProcs returns a function for the GOMAXPROCS of a process: a second P answers messages
// while one computes. A value that the user sets is kept.
func maxProcs(o *launch.Options, usable int) func(int) int {
	user := os.Getenv("GOMAXPROCS") != ""
	for _, a := range o.Apps {
		for _, x := range a.Env {
			user = user || strings.HasPrefix(x, "GOMAXPROCS=")
		}
	}
	return func(localProcs int) int {
		if user {
			return 0
		}
		return max(2, usable/max(1, localProcs))
	}
}

// newJobID makes the number of a new job.
func newJobID() (wire.JobID, error) {
	var id [8]byte
	err := random(id[:])
	return wire.JobID(binary.NativeEndian.Uint64(id[:]) | 1), err
}

// random fills the buffers with random bytes.
func random(bufs ...[]byte) error {
	for _, b := range bufs {
		for len(b) > 0 {
			n, err := unix.Getrandom(b, 0)
			if err != nil && err != unix.EINTR {
				return fmt.Errorf("getrandom: %d", err)
			}
			b = b[max(n, 0):]
		}
	}
	return nil
}
