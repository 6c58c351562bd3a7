// SPDX-License-Identifier: Apache-2.0

// Package testjob runs jobs whose processes are values in a test process. A Job has a head,
// agents and ranks on one or several pretended hosts; Run runs a function on its ranks. The
// tests of this module use it, and package mpitest is its public face.
package testjob

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/internal/control/server"
	"gompi/internal/core"
	"gompi/internal/host/segment"
	"gompi/mpi"
	"gompi/transport/inproc"
)

// Job is a job whose processes are values in this test process: a real control server, and
// engines over any transport. Most tests want mpitest.Run. A Job is for tests in which
// processes come, leave and die.
type Job struct {
	Server *server.Server

	agents []*server.Server // agents of the hosts, by number
	tb     testing.TB
	cfg    config
	id     wire.JobID
	hub    *inproc.Hub
	calls  core.CallTable
	mu     sync.Mutex
	live   map[wire.ProcID]*member

	changes Changes // guarded by mu
}

type member struct {
	proc  *mpi.Process
	start protocol.StartProc
	owns  []int // file descriptors of the welcome
	note  string
}

// New starts a job without processes. It ends with the test.
func New(tb testing.TB, opts ...Option) *Job {
	tb.Helper()
	j := &Job{tb: tb, hub: inproc.NewHub(), live: map[wire.ProcID]*member{}}
	j.cfg = newConfig(opts)
	var b [40]byte
	rand.Read(b[:])
	j.id = wire.JobID(binary.LittleEndian.Uint64(b[32:]) | 1)
	sc := server.Config{JobConfig: server.JobConfig{Job: j.id, Settings: maps.Clone(j.cfg.settings), UsableCPUs: 2, FaultTolerant: true, Boards: strings.Contains(j.cfg.transport, "shm")}}
	copy(sc.Secret[:], b[:32])
	sc.Aborted = func(by wire.ProcID, code int, msg string) { j.Server.Ending(msg) }
	sc.Start = func(ps []protocol.StartProc) error {
		j.mu.Lock()
		f := j.cfg.started
		j.mu.Unlock()
		if f == nil {
			return fmt.Errorf("testjob: the job starts no processes by itself")
		}
		return f(ps)
	}
	sc.Slots, sc.Strict = j.cfg.most, j.cfg.strict
	j.serveChanges(&sc)
	if j.cfg.slots != nil {
		j.serveHosts(sc)
		return j
	}
	var err error
	if j.Server, err = server.NewServer(sc); err != nil {
		tb.Fatal(err)
	}
	j.agents = []*server.Server{j.Server}
	tb.Cleanup(func() { j.Server.Close() })
	return j
}

// OnSpawn sets the function that starts spawned processes.
func (j *Job) OnSpawn(f func([]protocol.StartProc) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cfg.started = f
}

// firstProgram is the program of the first processes, and of newcomers by changes.
const firstProgram = "goroutine"

// Add reserves n processes with a world of their own; Boot starts each.
func (j *Job) Add(n int) []protocol.StartProc {
	j.tb.Helper()
	argv := make([][]string, n)
	for i := range argv {
		argv[i] = []string{firstProgram}
	}
	ps, _, err := j.Server.AddJob(argv)
	if err != nil {
		j.tb.Fatal(err)
	}
	return ps
}

// Boot starts one process. The caller must finalize or kill it.
func (j *Job) Boot(sp protocol.StartProc) (*mpi.Process, error) {
	a := j.agents[sp.Host]
	token, err := j.token(sp)
	if err != nil {
		return nil, err
	}
	a.Started(sp.Proc, os.Getpid())
	ctl, w, err := client.Dial(a.Addr(), token)
	if err != nil {
		return nil, err
	}
	m := &member{start: sp, owns: []int{w.Segment, w.Bell}}
	if f := j.cfg.welcomed; f != nil {
		f(w)
	}
	var said core.Control = ctl
	if n := j.cfg.commons; n != nil {
		said = &counting{ctl, n}
	}
	b, err := core.Open(said, w, core.Place{Transports: j.cfg.transport, Hub: j.hub, Book: make([]byte, segment.CallRegistryBytes), Wrap: j.cfg.wrap})
	if err != nil {
		return nil, err
	}
	b.SayLeft = func(line string) { j.tb.Log(line) }
	if j.cfg.compare && j.cfg.settings["GOMPI_CHECK"] == "" {
		b.Calls = &j.calls
	}
	if f := j.cfg.overheard; f != nil {
		b.Control = f(b.Control)
	}
	// When the job is aborted, the calls of a real process end with the process.
	ready := make(chan struct{})
	b.Lost = func(error) {
		go func() {
			<-ready
			m.proc.Core().Process().Kill(nil)
		}()
	}
	m.proc = new(mpi.Process)
	if err := m.proc.Core().Start(b); err != nil {
		return nil, err
	}
	close(ready)
	j.mu.Lock()
	j.live[sp.Proc] = m
	j.mu.Unlock()
	return m.proc, nil
}

// Leave finalizes a process.
func (j *Job) Leave(p *mpi.Process) error {
	err := p.Finalize()
	j.gone(p.Core().Process().Self, "exited with status 0", true)
	return err
}

// Kill ends a process as a signal would. The others learn of it from the control plane. Over
// inproc the transport is cut as well.
func (j *Job) Kill(p *mpi.Process) {
	c := p.Core().Process()
	c.Kill(func() { j.hub.Kill(c.Self) })
	j.gone(c.Self, "was killed by signal 9 (SIGKILL)", false)
}

func (j *Job) gone(id wire.ProcID, how string, clean bool) {
	j.mu.Lock()
	m := j.live[id]
	delete(j.live, id)
	j.mu.Unlock()
	if m == nil {
		return // it has ended before
	}
	j.exited(&m.start, how, clean)
	protocol.CloseFiles(m.owns...)
}

// exited reports how a process has ended.
func (j *Job) exited(sp *protocol.StartProc, how string, clean bool) {
	status := 128 + 9 // processes end in no other way here
	if clean {
		status = 0
	}
	j.Server.Ended(sp.Proc, status)
	j.agents[sp.Host].Exited(sp.Proc, how, clean)
}

// returned records that a rank's function has returned.
func (j *Job) returned(id wire.ProcID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m := j.live[id]; m != nil {
		m.note = "has returned"
	}
}

// RollCall returns the report that says which ranks wait for which others.
func (j *Job) RollCall() string {
	ops := ""
	for _, r := range j.Server.Ops() {
		ops += r.Waiting()
	}
	infos := j.Server.Snapshot()
	j.mu.Lock()
	defer j.mu.Unlock()
	var ps []callreg.ProcEntries
	queues := ""
	for i := range infos {
		in := &infos[i]
		m := j.live[in.Proc]
		if m == nil {
			continue
		}
		p := m.proc.Core().Process()
		ps = append(ps, callreg.ProcEntries{Proc: in.Proc, Rank: in.Rank, Size: in.Size, Name: in.Name, Note: m.note, Entries: p.Calls()})
		if q := p.Engine.Queues(); q != "" {
			queues += in.Called() + ":\n" + q
		}
	}
	return callreg.Report(ps) + ops + queues
}
