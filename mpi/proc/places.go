// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

const opAllocate fault.Call = "Allocate"

// Places is what Allocate asks for: the arguments of MPI_Iallocate.
type Places struct {
	// N is how many processes there are to be, at least one.
	N int
	// Nodes are the hosts on which they start, by their names in the job or by patterns
	// (*, ? and [], as of path.Match): one for all, or one for each; nil: any. Where
	// several match the free slots of the first are taken first.
	Nodes []string
	// Arch is a pattern that the architecture of the job's hosts matches, as Go calls
	// it (amd64, or linux/amd64); "": any.
	Arch string
	// Execs are the programs, one for all or one for each, which SetExec may change;
	// nil, and "": the one that the caller runs, with its arguments.
	Execs []string
	// Soft takes as many places as have free slots, if that is at least one, in the
	// order of the requests that have the same node; if there are none it waits as
	// CommSpawn, for those that are about to come free. Else it is hard: all, for which
	// it waits as long as the caller does, and where hosts may have more processes than
	// slots (no --strict-slots) it takes these.
	Soft bool
	// Scheduler is for the scheduler, gompirun, alone: "", or "wait=DURATION": how long
	// to wait for slots that others have.
	Scheduler string
}

// check refuses what cannot be asked for.
func (w *Places) check() (m *protocol.Spawn, err error) {
	m = &protocol.Spawn{Do: protocol.SpawnReserve}
	switch n := w.N; {
	case n < 1 || n > protocol.MaxSpawn:
		return nil, fmt.Errorf("%d processes, 1 to %d allowed", n, protocol.MaxSpawn)
	case len(w.Nodes) > 1 && len(w.Nodes) != n:
		return nil, fmt.Errorf("%d nodes for %d processes: one, or one for each", len(w.Nodes), n)
	case len(w.Execs) > 1 && len(w.Execs) != n:
		return nil, fmt.Errorf("%d programs for %d processes: one, or one for each", len(w.Execs), n)
	}
	if m.Wait, err = waitOf(w.Scheduler); err != nil {
		return nil, err
	}
	if w.hard() {
		m.Wait = protocol.MaxSpawnWait
	}
	if err := checkArch(w.Arch); err != nil {
		return nil, err
	}
	for i := 0; i < w.N; {
		part := protocol.SpawnPart{}
		node := pick(w.Nodes, i)
		if node != "" {
			part.Hosts = []string{node}
		}
		for ; i < w.N && pick(w.Nodes, i) == node; i++ {
			part.N++
		}
		if w.Soft {
			part.Will = []protocol.Counts{{From: 0, To: uint32(part.N), Step: 1}}
		}
		m.Parts = append(m.Parts, part)
	}
	if n := len(m.Parts); n > protocol.MaxCommands {
		return nil, fmt.Errorf("nodes that change %d times from one process to the next, at most %d allowed", n, protocol.MaxCommands)
	}
	return m, nil
}

// hard reports whether it waits until it has all.
func (w *Places) hard() bool { return !w.Soft && w.Scheduler == "" }

// waitOf reads Places.Scheduler.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	value, ok := strings.CutPrefix(text, "wait=")
	if !ok {
		return 0, fmt.Errorf("scheduler: %q is not wait=DURATION", text)
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > protocol.MaxSpawnWait {
		return 0, fmt.Errorf("scheduler: %q is no duration up to %v", value, protocol.MaxSpawnWait)
	}
	return d, nil
}

// checkArch holds a pattern to where this runs: all hosts of a job run one program.
func checkArch(pattern string) error {
	if pattern == "" {
		return nil
	}
	for _, name := range []string{runtime.GOARCH, runtime.GOOS + "/" + runtime.GOARCH} {
		switch ok, err := path.Match(pattern, name); {
		case err != nil:
			return fmt.Errorf("arch: %q is no pattern", pattern)
		case ok:
			return nil
		}
	}
	return fmt.Errorf("arch: the hosts of the job are %s/%s, not %q", runtime.GOOS, runtime.GOARCH, pattern)
}

// pick is the i-th of a list, or the only one; "": there is none.
func pick(list []string, i int) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return list[i]
}

// Allocate takes places for processes and returns a request for each, inactive: with Soft
// perhaps fewer than were asked for. They hold their slots until they are freed, or their
// processes have exited, or the caller's process ends: then those that are not started are
// given back. While there are too few slots a hard request waits, until ctx ends
// (ErrCancelled); one that is Soft, or with want.Scheduler, is ErrSpawn when its time is
// over. ErrSpawn at once where there can never be as many. Local, but for a round trip to
// the head.
func Allocate(ctx context.Context, p *mpi.Process, want Places) ([]*mpi.Persistent, error) {
	ops, err := Iallocate(p, want)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = ops[0].Cancel() }) // of all; or it is complete
	defer stop()
	if err := mpi.Waitall(ops); err != nil {
		return nil, errors.Join(err, mpi.FreeAll(ops))
	}
	if a := ops[0].State().(*place).of; a.cancelled() {
		err := p.Self().Core().Fault(opAllocate, mpi.ProcNull, &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(ctx)})
		return nil, errors.Join(err, mpi.FreeAll(ops))
	}
	return Served(ops)
}

// Served frees those requests of an Iallocate that is complete which have got no place,
// and returns the others.
func Served(ops []*mpi.Persistent) (served []*mpi.Persistent, err error) {
	var none []*mpi.Persistent
	for _, op := range ops {
		if Nodename(op) == "" {
			none = append(none, op)
		} else {
			served = append(served, op)
		}
	}
	return served, mpi.FreeAll(none)
}

// Iallocate starts an Allocate: the requests are active, and complete together. What
// could not be had is the error of each. With Soft some may have got no place: they have
// no Nodename, and cannot be started. Cancel of one of them gives up all, if they are not
// served. An error of the call itself is one of its arguments, ErrArg. Local.
func Iallocate(p *mpi.Process, want Places) ([]*mpi.Persistent, error) {
	m, err := want.check()
	if err != nil {
		return nil, p.Self().Core().Fail(fault.Arg, opAllocate, mpi.ProcNull, -1, -1, "", err)
	}
	ctx, cancel := p.Core().Process().WhileJob(nil)
	a := &allocation{p: p, cancel: cancel, left: want.N}
	ops := make([]*mpi.Persistent, want.N)
	reqs := make([]mpi.Request, want.N)
	for i := range ops {
		x := &place{of: a, exec: pick(want.Execs, i)}
		a.places = append(a.places, x)
		reqs[i] = p.GrequestStart(mpi.Grequest{Query: x.queryPlace, Cancel: a.giveUp})
		ops[i] = p.NewPersistent(Kind, x, reqs[i])
	}
	go func() {
		defer cancel()
		b, err := p.Core().Process().Control.SpawnAll(ctx, m)
		for want.hard() && errors.Is(err, protocol.ErrUndecided) { // it waits for a change no longer
			b, err = p.Core().Process().Control.SpawnAll(ctx, m)
		}
		a.served(ctx, m, &b, err)
		for _, r := range reqs {
			_ = r.GrequestComplete() // nobody else does
		}
	}()
	return ops, nil
}

// allocation is what one Allocate has got.
type allocation struct {
	p      *mpi.Process
	places []*place
	cancel context.CancelFunc

	mu     sync.Mutex
	set    uint32 // of the places; 0: it is not served
	left   int    // places that are not freed
	gaveUp bool
	over   bool         // it is decided
	why    *fault.Fault // it has failed
}

// served says what has come of it.
func (a *allocation) served(ctx context.Context, m *protocol.Spawn, b *protocol.SpawnBody, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if err != nil {
		if !a.gaveUp || ctx.Err() == nil {
			a.why = core.Refusal(ctx, fault.Spawn, err)
		}
		return
	}
	a.gaveUp = false
	a.set = b.World.Number
	own, _ := os.Hostname() // where hosts have no names there is one
	first, got := 0, 0
	for i := range m.Parts {
		for k := range int(b.Counts[i]) {
			x := a.places[first+k]
			x.id, x.node = b.World.Members.At(got), own
			switch host := b.World.Hosts.At(got); {
			case int64(host) < int64(len(b.Nodes)):
				x.node = b.Nodes[host]
			case len(b.Nodes) > 0:
				x.node = fmt.Sprintf("host %d", host)
			}
			got++
		}
		first += m.Parts[i].N
	}
	var freed []*place
	for _, x := range a.places {
		if x.freed {
			freed = append(freed, x)
		}
	}
	a.giveBack(freed)
}

// giveBack tells the head of places that are freed; mu is held.
func (a *allocation) giveBack(list []*place) {
	var b wire.MembersBuilder
	for _, x := range list {
		if x.id != (wire.ProcID{}) {
			b.Add(wire.Range{First: x.id, Count: 1})
		}
	}
	c, m := a.p.Core().Process().Control, b.Members()
	switch {
	case a.set == 0:
	case a.left == 0:
		_ = c.ReleaseSet(a.set) // a connection that is lost holds nothing; it gives back all
	case m.Len() > 0:
		_ = c.Tell(&protocol.GiveBack{Members: m})
	}
}

// queryPlace is of each request.
func (x *place) queryPlace(st *mpi.Status) error {
	a := x.of
	a.mu.Lock()
	st.Cancelled = a.gaveUp
	why := a.why
	if !a.gaveUp && (why != nil || x.id != (wire.ProcID{})) {
		st.Stage = uint8(Allocated)
	}
	a.mu.Unlock()
	if why == nil {
		return nil
	}
	return a.p.Self().Core().Fault(opAllocate, mpi.ProcNull, why)
}

// giveUp is Cancel of a request.
func (a *allocation) giveUp(complete bool) error {
	a.mu.Lock()
	a.gaveUp = a.gaveUp || !a.over
	a.mu.Unlock()
	a.cancel()
	return nil
}

func (a *allocation) cancelled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gaveUp
}
