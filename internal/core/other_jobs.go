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
	"gompi/transport"
)

// otherJobs is what a process needs to talk with processes of other jobs, which it meets
// at a port: the secret shared with each job, and a transport that reaches them.
type otherJobs struct {
	mu      sync.Mutex
	secrets map[wire.JobID][32]byte

	// opening is held while the transport is opened. open opens it; nil if a transport
	// that reaches other jobs is open, or if none can be opened: why tells the reason.
	opening sync.Mutex
	open    func() (t transport.Transport, addrs []string, err error)
	why     error
	// addrs are the addresses of this process that the control plane tells to others.
	addrs []string
}

func (a *otherJobs) secret(job wire.JobID) (secret [32]byte, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	secret, ok = a.secrets[job]
	return secret, ok
}

func (a *otherJobs) learn(job wire.JobID, secret [32]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.secrets == nil {
		a.secrets = map[wire.JobID][32]byte{}
	}
	a.secrets[job] = secret
}

func (a *otherJobs) forget(job wire.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.secrets, job)
}

// reaches is the name of the transport between jobs.
const reaches = "tcp"

// errRank: ranks over inproc have no place to wait for sockets.
var errRank = errors.New("a rank whose transport is inproc alone reaches no other job")

// mayOpen remembers how to open the transport between jobs, if it is not open already.
func (a *otherJobs) mayOpen(b *Boot, at *Place, env transport.Env, addrs []string) {
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
	a := p.otherJobs
	a.opening.Lock()
	defer a.opening.Unlock()
	if a.open == nil {
		return a.why
	}
	t, addrs, err := a.open()
	if err != nil {
		return fmt.Errorf("transport %q: %w", reaches, err)
	}
	if err := p.Engine.AddTransport(t); err != nil {
		return err
	}
	a.open, a.addrs = nil, append(a.addrs, addrs...)
	return p.Control.Announce(a.addrs)
}

// Face lets this process talk with the members of a group of another job: it opens the
// transport between jobs, and learns the job's secret from the head. For a group of the own
// job it does nothing. It succeeds also if the other job is gone: the control plane then
// tells the ends of its processes.
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
	p.otherJobs.learn(job, [32]byte(b.Val))
	if err := p.Control.Tell(&protocol.Job{Kind: protocol.KindReachable, Job: job}); err != nil {
		return Refusal(ctx, fault.Port, err)
	}
	return nil
}

// WhereBytes is the length of Where.
const WhereBytes = 16

// Where identifies the host and the user of this process: jobs with equal values can meet.
// Zero means that this process can meet no other job.
func (p *Process) Where() (where [WhereBytes]byte) {
	if a := p.otherJobs; a == nil || a.why != nil || p.far {
		return where
	}
	h := fnv.New128a()
	h.Write(HostName())
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(os.Geteuid())))
	h.Sum(where[:0])
	return where
}

// Alone reports whether this process is a singleton: no launcher started it.
func (p *Process) Alone() bool { return p.otherJobs == nil }

// jobOver ends the talk with another job, of which the control plane hears nothing more.
func (p *Process) jobOver(job wire.JobID) {
	p.otherJobs.forget(job)
	p.Engine.RetireJob(job)
}

// mixed reports whether the members are of several jobs.
func mixed(members wire.Members) bool {
	return slices.ContainsFunc(members.Ranges(), func(r wire.Range) bool { return r.First.Job != members.At(0).Job })
}

// hostsOfJobs returns the hosts of members of several jobs. A job that meets another is on
// one host, and shares no memory with the other, so each job counts as a host; they are
// numbered in the order of the members.
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
