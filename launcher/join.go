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

// newJob joins a head, the agent of this host and their control plane, and who decides
// about the job's size; nil: nobody. With a starter the agent is another process, which
// may be on another host.
func newJob(line *options, start starter) (h *supervisor.Supervisor, w *steward, err error) {
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
	if t := line.to; t != nil {
		job, streams.Lease = t.job, t.fd
	}
	h = supervisor.New(o, job)
	hosts := hostNames(len(line.pretend))
	cfg := server.Config{
		JobConfig: server.JobConfig{
			Job: job, Secret: secret,
			Settings: o.Settings, FaultTolerant: o.FT, KillGrace: o.KillGrace,
			UsableCPUs: usable, MaxProcs: procs,
			Aborted: h.Aborted, Joined: h.Joined, Finalized: h.Finalized,
		},
		Start:     h.Spawn,
		Launch:    func(l *server.Launch) error { noteGroup(h, hosts, l); return h.Launch(l.Procs) },
		Discard:   func(procs []wire.ProcID) { h.Discard(procs, server.DiscardGrace) },
		Signal:    h.SignalTo,
		Kept:      h.Kept,
		Leave:     h.Leave,
		Stay:      h.Stay,
		Terminate: h.Terminate,
		Main:      h.Main,
	}
	line.changes.tell(&cfg.JobConfig)
	w = line.changes.steward
	if line.to != nil {
		cfg.Slots = atMost(cfg.Slots, line.to.total)
	}
	if path := line.changes.manager; path != "" {
		if w, err = steered(path, job, line.changes.slots); err != nil {
			return nil, nil, err
		}
		defer func() {
			if err != nil {
				w.close()
			}
		}()
	}
	if w != nil {
		w.serves(&cfg, line.ranks())
	}
	cfg.HostNames = hosts
	if line.pretend != nil {
		cfg.HostSlots = line.pretend
		start = startPretended
	}
	if start != nil {
		server, err := joinFar(h, o, cfg, max(1, len(line.pretend)), start)
		if err == nil && w != nil {
			go w.run(server)
		}
		return h, w, err
	}
	a, err := spawner.New(o, job, procs, streams, func(ev launch.Event) { h.HandleEvent(0, ev) }, h.Post)
	if err != nil {
		return nil, nil, err
	}
	cfg.HostConfig = hostConfig(a, h.Post)
	server, err := server.NewServer(cfg)
	if err != nil {
		return nil, nil, err
	}
	a.Serve(server)
	h.Serve(server, a)
	if line.to != nil {
		line.to.serve(h, server, w)
	}
	if w != nil {
		go w.run(server)
	}
	return h, w, nil
}

// hostNames are the names of the hosts: of this one, or of so many that it pretends to
// be.
func hostNames(pretended int) []string {
	own, err := os.Hostname()
	if err != nil || own == "" {
		own = "localhost"
	}
	if pretended == 0 {
		return []string{own}
	}
	var list []string
	for i := range pretended {
		list = append(list, fmt.Sprintf("%s-%d", own, i))
	}
	return list
}

// noteGroup says which group of newcomers starts, and after whom.
func noteGroup(h *supervisor.Supervisor, hosts []string, l *server.Launch) {
	g := l.Group
	if g == nil {
		return
	}
	after := "those there before"
	if g.By >= 0 {
		after = fmt.Sprintf("group %d", g.By)
	}
	h.Note("operation %d: group %d of %d starts on host %s in step %d, of %d, after %s", g.Op, g.Group, g.Groups, hosts[g.Procs[0].Host], g.Step, len(g.Procs), after)
}

// hostConfig is what the control plane tells an agent, on its own goroutine.
func hostConfig(a *spawner.Spawner, post func(func())) server.HostConfig {
	return server.HostConfig{
		Reap:    func(p wire.ProcID) { post(func() { a.Reap(p) }) },
		Lost:    func(p wire.ProcID) { post(func() { a.Lost(p) }) },
		Dropped: func(p wire.ProcID, why string) { post(func() { a.Dropped(p, why) }) },
	}
}

// maxProcs is the GOMAXPROCS of a process: a second P, so that somebody
// answers while one computes. Whoever sets it himself keeps it.
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

// newJobID is the number of a new job.
func newJobID() (wire.JobID, error) {
	var id [8]byte
	err := random(id[:])
	return wire.JobID(binary.NativeEndian.Uint64(id[:]) | 1), err
}

// random fills the buffers with secrets.
func random(bufs ...[]byte) error {
	for _, b := range bufs {
		for len(b) > 0 {
			n, err := unix.Getrandom(b, 0)
			if err != nil && err != unix.EINTR {
				return fmt.Errorf("getrandom: %w", err)
			}
			b = b[max(n, 0):]
		}
	}
	return nil
}
