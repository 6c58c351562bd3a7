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

// Places says which slots Allocate takes: the arguments of MPI_Iallocate.
type Places struct {
	// N is the number of processes, at least one.
	N int
	// Nodes are the hosts on which the processes start, by their names in the job or by
	// patterns (*, ? and [], as of path.Match): one for all, or one for each; nil: any host.
	// Where several hosts match, the free slots of the first one come first.
	Nodes []string
	// Arch is a pattern for the architecture of the job's hosts, as Go names it (amd64, or
	// linux/amd64); "": any.
	Arch string
	// Execs are the programs, one for all or one for each; SetExec may change them. nil and
	// "" mean the caller's program with its arguments.
	Execs []string
	// Soft takes the free slots, at least one, in the order of the requests with the same
	// node. If there is no free slot it waits for slots that are about to come free, as
	// CommSpawn does. Without Soft the request is hard: it takes all N slots, and waits for
	// them as long as the caller does. Where hosts may have more processes than slots (no
	// --strict-slots) a hard request exceeds the slots.
	Soft bool
	// Scheduler is for the scheduler, gompirun: "", or "wait=DURATION", how long to wait
	// for slots that others have.
	Scheduler string
}

// check refuses a request that exceeds the bounds of the protocol, and returns the message.
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

// hard reports whether the request waits until it has all slots.
func (w *Places) hard() bool { return !w.Soft && w.Scheduler == "" }

// waitOf parses Places.Scheduler.
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
		return 0, fmt.Errorf("scheduler: %q is not a duration up to %v", value, protocol.MaxSpawnWait)
	}
	return d, nil
}

// checkArch compares a pattern with the architecture of this process: all hosts of a job run
// one program.
func checkArch(pattern string) error {
	if pattern == "" {
		return nil
	}
	for _, name := range []string{runtime.GOARCH, runtime.GOOS + "/" + runtime.GOARCH} {
		switch ok, err := path.Match(pattern, name); {
		case err != nil:
			return fmt.Errorf("arch: %q is not a pattern", pattern)
		case ok:
			return nil
		}
	}
	return fmt.Errorf("arch: the hosts of the job are %s/%s, not %q", runtime.GOOS, runtime.GOARCH, pattern)
}

// pick returns the i-th string of a list, or its only one; "" for an empty list.
func pick(list []string, i int) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return list[i]
}

// Allocate takes slots for processes and returns an inactive request for each. With Soft
// there may be fewer than N. Local, but for a round trip to the head.
//
// A request holds its slot until it is freed, or its process has exited, or the caller's
// process ends; that gives back the slots of processes that are not started. While there are
// too few slots a hard request waits until ctx ends.
//
// Errors: mpi.ErrCancelled when ctx ends; mpi.ErrSpawn if there can never be enough slots, and
// for a request with Soft or Scheduler when its time is over; mpi.ErrArg.
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

// Served returns the requests of a complete Iallocate that have a slot, and frees the others.
// Local.
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

// Iallocate starts an Allocate. Its requests are active, and complete together, with the
// errors of Allocate. Local. With Soft some requests may have no slot: they have no Nodename,
// and cannot be started. Cancel of one request cancels all, until they complete. Error:
// mpi.ErrArg.
func Iallocate(p *mpi.Process, want Places) ([]*mpi.Persistent, error) {
	m, err := want.check()
	if err != nil {
		return nil, p.Self().Core().Fail(fault.Arg, opAllocate, mpi.ProcNull, -1, -1, "", err)
	}
	ctx, cancel := p.Core().Process().WhileJob(nil)
	a := &allocation{p: p, cancel: cancel, live: want.N}
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
		for want.hard() && errors.Is(err, protocol.ErrUndecided) { // it does not wait for the undecided change
			b, err = p.Core().Process().Control.SpawnAll(ctx, m)
		}
		a.served(ctx, m, &b, err)
		for _, r := range reqs {
			_ = r.GrequestComplete() // this goroutine alone completes it
		}
	}()
	return ops, nil
}

// allocation is one Allocate and its slots.
type allocation struct {
	p      *mpi.Process
	places []*place
	cancel context.CancelFunc

	mu     sync.Mutex
	set    uint32 // of the slots; 0: not served
	live   int    // slots that are not freed
	gaveUp bool
	over   bool         // the head has answered
	why    *fault.Fault // why it has failed
}

// served notes the answer of the head.
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
	own, _ := os.Hostname() // a job without host names has one host
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

// giveBack returns freed slots to the head; mu is held.
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
	case a.live == 0:
		_ = c.ReleaseSet(a.set) // releases all slots; a lost connection does so as well
	case m.Len() > 0:
		_ = c.Tell(&protocol.GiveBack{Members: m})
	}
}

// queryPlace is the Query of each request.
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

// giveUp is the Cancel of each request.
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
