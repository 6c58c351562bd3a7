// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/mpi"
	"gompi/rma"
)

// ground is the memory of a program as one rank sees it.
type ground struct {
	p       *program
	comm    *mpi.Comm
	win     *rma.Window
	mem     []byte
	at      []int // of a dynamic window: the addresses of all zones
	exposed *rma.Exposed
	remotes []*rma.Remote
	cancel  context.CancelFunc // of the window's context
}

// prepare makes the window of a program.
func prepare(p *program, comm *mpi.Comm) (*ground, error) {
	switch p.unit {
	case 1:
		return prepareOf[uint8](p, comm)
	case 2:
		return prepareOf[uint16](p, comm)
	case 4:
		return prepareOf[uint32](p, comm)
	}
	return prepareOf[uint64](p, comm)
}

func prepareOf[T any](p *program, comm *mpi.Comm) (g *ground, err error) {
	g = &ground{p: p, comm: comm}
	n := p.zones[comm.Rank()] * p.zone
	switch p.flavor {
	case "create":
		g.mem = aligned(n)
		g.win, err = rma.Create(comm, as[T](g.mem))
	case "allocate":
		if g.win, err = rma.Allocate[T](comm, n/p.unit); err == nil {
			g.mem = bytesOf(rma.Memory[T](g.win))
		}
	case "shared":
		if g.win, err = rma.AllocateShared[T](comm, n/p.unit); err == nil {
			g.mem = bytesOf(rma.Memory[T](g.win))
		}
	case "dynamic":
		err = g.attach()
	case "expose":
		g.mem = aligned(n)
		if g.exposed, err = rma.Expose(comm.Process(), as[T](g.mem)); err == nil {
			err = g.open()
		}
	}
	if err == nil && p.context && g.win != nil {
		var ctx context.Context
		ctx, g.cancel = context.WithCancel(context.Background())
		g.win = g.win.WithContext(ctx)
	}
	return g, err
}

// attach makes a dynamic window: its unit is one byte.
func (g *ground) attach() (err error) {
	p := g.p
	if g.win, err = rma.CreateDynamic(g.comm); err != nil {
		return err
	}
	total, first := 0, 0
	for r, n := range p.zones {
		if r == g.comm.Rank() {
			first = total
		}
		total += n
	}
	mine := p.zones[g.comm.Rank()]
	g.mem = aligned(mine * p.zone)
	g.at = make([]int, total)
	all := make([]int, p.ranks*total)
	for z := range mine {
		switch {
		case p.apart:
			g.at[first+z], err = rma.Attach(g.win, g.mem[z*p.zone:][:p.zone])
		case z == 0:
			g.at[first], err = rma.Attach(g.win, g.mem)
		default:
			g.at[first+z] = g.at[first] + z*p.zone
		}
		if err != nil {
			return err
		}
	}
	if err := mpi.Allgather(g.comm, g.at, all); err != nil {
		return err
	}
	for i := range g.at {
		g.at[i] = 0
		for r := range p.ranks {
			g.at[i] += all[r*total+i]
		}
	}
	return nil
}

func (g *ground) open() error {
	keys := make([]rma.Key, g.p.ranks)
	if err := mpi.Allgather(g.comm, []rma.Key{g.exposed.Key()}, keys); err != nil {
		return err
	}
	for _, k := range keys {
		r, err := rma.Open(g.comm.Process(), k)
		if err != nil {
			return err
		}
		g.remotes = append(g.remotes, r)
	}
	return nil
}

func (g *ground) free() error {
	if g.cancel != nil {
		defer g.cancel()
	}
	if g.win != nil {
		return g.win.Free()
	}
	var errs []error
	for _, r := range g.remotes {
		errs = append(errs, r.Close())
	}
	return errors.Join(append(errs, g.exposed.Close())...)
}

// offset is where displacement 0 of an access is, as the calls want it.
func (g *ground) offset(a *access) int {
	if g.at == nil {
		return a.base / g.p.unit
	}
	k := a.zone
	for _, n := range g.p.zones[:a.target] {
		k += n
	}
	return g.at[k] + a.base - a.zone*g.p.zone
}

// made is an access that has been begun: what it reads, and its request.
type made struct {
	read []byte
	src  []byte // that it may be reading
	req  mpi.Request
	has  bool
}

// release is the end of an access at its origin: its buffer is the caller's again.
func (m *made) release() {
	clear(m.src)
	m.src = nil
}

// begin makes an access.
func (g *ground) begin(a *access) (m made, err error) {
	e := &elems[a.elem]
	src, from := a.room(&a.here)
	if a.kind != getAccess {
		spread(src, from, &a.here, e.size, a.value)
	} else {
		m.read = src
	}
	dst, to := a.room(&a.result)
	if a.kind > accAccess {
		m.read = dst
	}
	if a.kind == countAccess {
		m.read = nil
		return m, g.count(a)
	}
	at := g.offset(a)
	if a.typed {
		n := len(a.here.displs) * e.size
		err = g.typed(a, e, src[from:][:n], dst[to:][:n], at, &m)
		return m, err
	}
	here, err := a.here.make(e.dt)
	if err != nil {
		return m, err
	}
	there, err := a.there.make(e.dt)
	if err != nil {
		return m, err
	}
	result, err := a.result.make(e.dt)
	if err != nil {
		return m, err
	}
	b, res := mpi.BufAt(here, src, from, a.here.count), mpi.BufAt(result, dst, to, a.result.count)
	w, n := g.win, a.there.count
	m.has = a.request
	switch {
	case g.remotes != nil && a.kind == putAccess:
		m.has = false
		err = g.remotes[a.target].WriteBuf(b, at, n, there)
	case g.remotes != nil:
		m.has = false
		err = g.remotes[a.target].ReadBuf(b, at, n, there)
	case a.kind == putAccess && a.request:
		m.req = w.RPutBuf(b, a.target, at, n, there)
	case a.kind == putAccess:
		err = w.PutBuf(b, a.target, at, n, there)
	case a.kind == getAccess && a.request:
		m.req = w.RGetBuf(b, a.target, at, n, there)
	case a.kind == getAccess:
		err = w.GetBuf(b, a.target, at, n, there)
	case a.kind == accAccess && a.request:
		m.req = w.RAccumulateBuf(b, a.target, at, n, there, a.op)
	case a.kind == accAccess:
		err = w.AccumulateBuf(b, a.target, at, n, there, a.op)
	case a.request:
		m.req = w.RGetAccumulateBuf(b, res, a.target, at, n, there, a.op)
	default:
		err = w.GetAccumulateBuf(b, res, a.target, at, n, there, a.op)
	}
	if a.kind == putAccess || a.kind == accAccess {
		m.src = src
	}
	return m, err
}

// typed makes an access by a call for elements of one type, which lie side by
// side.
func (g *ground) typed(a *access, e *elem, b, result []byte, at int, m *made) (err error) {
	w := g.win
	m.has = a.request && a.kind <= getAccAccess
	switch {
	case g.remotes != nil && a.kind == putAccess:
		m.has = false
		return e.write(g.remotes[a.target], b, at)
	case g.remotes != nil:
		m.has = false
		return e.read(g.remotes[a.target], b, at)
	case a.kind == putAccess && a.request:
		m.req = e.rput(w, b, a.target, at)
	case a.kind == putAccess:
		err = e.put(w, b, a.target, at)
	case a.kind == getAccess && a.request:
		m.req = e.rget(w, b, a.target, at)
	case a.kind == getAccess:
		err = e.get(w, b, a.target, at)
	case a.kind == accAccess && a.request:
		m.req = e.racc(w, b, a.target, at, a.op)
	case a.kind == accAccess:
		err = e.acc(w, b, a.target, at, a.op)
	case a.kind == getAccAccess && a.request:
		m.req = e.rgac(w, b, result, a.target, at, a.op)
	case a.kind == getAccAccess:
		err = e.getAcc(w, b, result, a.target, at, a.op)
	case a.kind == fetchAccess:
		err = e.fetch(w, b, result, a.target, at, a.op)
	case a.kind == swapAccess:
		err = e.swap(w, a.compare, b, result, a.target, at)
	}
	if a.kind == putAccess || a.kind == accAccess {
		m.src = b
	}
	return err
}

// count adds to a number under the lock that is held.
func (g *ground) count(a *access) error {
	e := &elems[a.elem]
	b := aligned(8)
	if err := e.get(g.win, b, a.target, g.offset(a)); err != nil {
		return err
	}
	if err := g.win.Flush(a.target); err != nil {
		return err
	}
	as[int64](b)[0] += int64(a.value[0])
	return e.put(g.win, b, a.target, g.offset(a))
}

// play is one rank of a program: it returns what differs from what was
// foretold.
func play(p *program, want *expected, comm *mpi.Comm) error {
	g, err := prepare(p, comm)
	if err != nil {
		return fmt.Errorf("making the window: %w", err)
	}
	if err := comm.Barrier(); err != nil {
		return err
	}
	for i := range p.phases {
		f := &p.phases[i]
		for _, s := range f.stores {
			if s.rank == comm.Rank() {
				copy(g.mem[s.at:], s.b)
			}
		}
		made, err := g.run(f)
		if err != nil {
			return fmt.Errorf("phase %d, %s: %w", i, schemeNames[f.scheme], err)
		}
		for k, m := range made {
			if w := want.read[i][k]; w != nil && f.calls[k].origin == comm.Rank() && !bytes.Equal(m.read, w) {
				return fmt.Errorf("phase %d, %s: %v: read: %s", i, schemeNames[f.scheme], &f.calls[k], differs(m.read, w))
			}
		}
		if !f.check {
			continue
		}
		if w := want.memory[i][comm.Rank()]; !bytes.Equal(g.mem, w) {
			return fmt.Errorf("phase %d, %s: memory of rank %d: %s", i, schemeNames[f.scheme], comm.Rank(), differs(g.mem, w))
		}
		if p.flavor == "shared" {
			if err := comm.Barrier(); err != nil {
				return err
			}
			r := (comm.Rank() + 1) % p.ranks
			m, err := rma.SharedQuery[byte](g.win, r)
			if err != nil {
				return err
			}
			if w := want.memory[i][r]; !bytes.Equal(m, w) {
				return fmt.Errorf("phase %d, %s: memory of rank %d, shared: %s", i, schemeNames[f.scheme], r, differs(m, w))
			}
		}
		if err := comm.Barrier(); err != nil {
			return err
		}
	}
	return g.free()
}

// mine are the calls of the caller, by their numbers in the phase.
func (g *ground) mine(f *phase) (list []int) {
	for k := range f.calls {
		if f.calls[k].origin == g.comm.Rank() {
			list = append(list, k)
		}
	}
	return list
}

// targets are the ranks of some calls.
func targets(f *phase, list []int) (ranks []int) {
	for _, k := range list {
		ranks = append(ranks, f.calls[k].target)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// origins are the ranks whose calls are to one rank.
func origins(f *phase, rank int) (ranks []int) {
	for k := range f.calls {
		if f.calls[k].target == rank {
			ranks = append(ranks, f.calls[k].origin)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}
