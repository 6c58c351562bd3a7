// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"sync"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/engine"
	"gompi/transport"
)

// What a process needs to talk with processes of other jobs, which it has met at a port.

// abroad is what this process and those of other jobs prove to each other, and the
// transport by which they talk.
type abroad struct {
	mu      sync.Mutex
	secrets map[wire.JobID][32]byte

	// opens is who is opening the transport; open makes it, nil: there is one that
	// reaches other jobs, or none can be.
	opens sync.Mutex
	open  func() (t transport.Transport, addrs []string, err error)
	why   error    // why none can be
	addrs []string // where the others reach this process that know nothing but the control plane
}

func (a *abroad) secret(job wire.JobID) (secret [32]byte, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	secret, ok = a.secrets[job]
	return secret, ok
}

func (a *abroad) learn(job wire.JobID, secret [32]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.secrets == nil {
		a.secrets = map[wire.JobID][32]byte{}
	}
	a.secrets[job] = secret
}

func (a *abroad) forget(job wire.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.secrets, job)
}

// reaches is the transport between jobs.
const reaches = "tcp"

// errRank: ranks over inproc have no place to wait for sockets.
var errRank = errors.New("a rank whose transport is inproc alone reaches no other job")

// mayOpen notes how the transport between jobs is opened, if it is not open already.
func (a *abroad) mayOpen(b *Boot, at *Place, env transport.Env, addrs []string) {
	a.addrs = addrs
	switch {
	case slices.ContainsFunc(b.Transports, func(t transport.Transport) bool { return t.Caps().Name == reaches }):
	case at.Transports == "inproc":
		a.why = errRank
	default:
		// What it was given of the host is that of the transport that has it.
		env.Segment, env.Bell, env.Arena = -1, -1, wire.ArenaRange{File: -1}
		a.open = func() (transport.Transport, []string, error) { return at.openOne(reaches, env, b) }
	}
}

// reachable opens the transport between jobs, if it is not open.
func (p *Process) reachable() error {
	a := p.abroad
	a.opens.Lock()
	defer a.opens.Unlock()
	if a.open == nil {
		return a.why
	}
	t, addrs, err := a.open()
	if err != nil {
		return fmt.Errorf("transport %q: %w", reaches, err)
	}
	if err := engine.Open(p.Engine, t); err != nil {
		return err
	}
	a.open, a.addrs = nil, append(a.addrs, addrs...)
	return p.Control.Announce(a.addrs)
}

// Face makes this process one that can talk with the members of a group that was met, where
// they are of another job. It has nothing to do with others. Of a job that is gone it is as
// well: the ends of its processes are told.
func (p *Process) Face(ctx context.Context, theirs wire.Members) *fault.Fault {
	job := theirs.At(0).Job
	if job == p.Self.Job {
		return nil
	}
	if err := p.reachable(); err != nil {
		return &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: fmt.Errorf("job %016x: %w", uint64(job), err)}
	}
	var b protocol.ValueBody
	switch err := p.Control.Ask(ctx, &protocol.Job{Kind: protocol.KindForeignJob, Job: job}, &b); {
	case errors.Is(err, protocol.ErrNotFound):
		return nil
	case err != nil:
		return Refusal(ctx, fault.Port, err)
	case len(b.Val) != 32:
		return wrong(fault.Port, "a secret of %d bytes", len(b.Val))
	}
	p.abroad.learn(job, [32]byte(b.Val))
	if err := p.Control.Tell(&protocol.Job{Kind: protocol.KindReachable, Job: job}); err != nil {
		return Refusal(ctx, fault.Port, err)
	}
	return nil
}

// WhereBytes is the length of Where.
const WhereBytes = 16

// Where tells apart where jobs meet: those that are at the same place can. Zero: this one
// meets no other.
func (p *Process) Where() (where [WhereBytes]byte) {
	if a := p.abroad; a == nil || a.why != nil || p.far {
		return where
	}
	h := fnv.New128a()
	h.Write(HostName())
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(os.Geteuid())))
	h.Sum(where[:0])
	return where
}

// Alone reports whether nobody has launched this process.
func (p *Process) Alone() bool { return p.abroad == nil }

// jobOver: nothing is heard of another job any more.
func (p *Process) jobOver(job wire.JobID) {
	p.abroad.forget(job)
	engine.JobOver(p.Engine, job)
}

// mixed reports whether some members are of another job than the first.
func mixed(members wire.Members) bool {
	return slices.ContainsFunc(members.Ranges(), func(r wire.Range) bool { return r.First.Job != members.At(0).Job })
}

// hostsOfJobs is where members are that are not of one job: each that meets another is on
// one host, and shares no memory with those of another. The jobs are numbered as they come.
func hostsOfJobs(members wire.Members) (hosts wire.Hosts) {
	var jobs []wire.JobID
	for _, r := range members.Ranges() {
		k := slices.Index(jobs, r.First.Job)
		if k < 0 {
			k, jobs = len(jobs), append(jobs, r.First.Job)
		}
		hosts = hosts.Add(uint32(k), r.Count)
	}
	return hosts
}
