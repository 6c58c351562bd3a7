// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/internal/control/hostmem"
	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// Array registers data that lies in memory of the hosts, which the module makes: one piece
// for each host, made by the agent, of which *x becomes the block of the calling rank,
// zeroed. At a change of size nothing is copied on a host, whatever the method: *x becomes
// another part of the same memory. Between hosts ranges are sent at the commit, constant
// data too. For layouts that give ranks ranges in their order: Block, Weighted, Irregular,
// Rows and Entries, without least movement; of others it is Distributed, in new memory.
//
// *x is nil before, and is not assigned by the program while the data is registered. The
// old block stays memory that may be read until Finalize or Free; from the Checkpoint that
// commits a change on it is others' data, or zeros if its host has it no more, and who
// writes there writes into what is theirs. With GOMPI_CHECK=1 that is a fault, but for
// pages that a rank shares with its neighbours. Finalize and Free make *x nil.
//
// What dies with a process is its block, as with Distributed: the memory is there, but
// with what it had written when it died.
//
// On a newcomer, and in what else is said there, it is like Distributed. The error of
// memory that cannot be had names it and its size.
func Array[T any](m *Module, name string, x *[]T, l Layout, mode ...Mode) error {
	return register(m, &array{entry: entry{Name: name, Rule: l.l}, made: true}, x, mode)
}

// Free forgets data as Unregister does, and gives up its memory: the variable becomes nil,
// and slices of an Array are no memory any more. Collective like Unregister.
func (m *Module) Free(name string) error {
	a := m.named(name)
	if err := m.unregister("Free", name); err != nil {
		return err
	}
	return a.free()
}

// lay makes the memory of data that is registered by Array.
func (m *Module) lay(a *array) error {
	if n := len(a.load()); n > 0 {
		return fmt.Errorf("%q has a variable with %d bytes already: an array makes its own", a.Name, n)
	}
	rank, bytes := m.comm.Rank(), a.Rule.N*a.Bytes
	err := errors.ErrUnsupported
	if a.Rule.Contiguous() && bytes > 0 {
		a.Shared = fmt.Sprintf("mam %s %d %s", m.set, m.edition, a.Name)
		err = m.mapArray(a)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		a.Shared = ""
		mine, block := m.fresh(a.split.Count(rank) * a.Bytes)
		a.store(mine)
		a.given = block
		if bytes > 0 {
			m.say(nil, fmt.Sprintf("%q, %v, does not lie in place: it moves as other data does", a.Name, Layout{a.Rule}))
		}
		return nil
	}
	if err == nil {
		r := a.span(a.split, rank)
		if _, err = a.shared.Fill(r); err == nil {
			err = a.shared.Own(r)
		}
		if err == nil {
			a.store(a.at(r))
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%q: %d bytes of %d on rank %d of %d: %w", a.Name, a.split.Count(rank)*a.Bytes, bytes, rank, m.comm.Size(), err), a.free())
}

// mapArray maps the memory of an array.
func (m *Module) mapArray(a *array) (err error) {
	p := m.comm.Process().Core().Process()
	a.shared, err = hostmem.Open(m.ctx, p.Control, a.Shared, a.Rule.N*a.Bytes, hostmem.Options{
		Guard: p.Setting("GOMPI_CHECK") == "1",
		Small: p.Setting("GOMPI_HUGE") == "off",
	})
	return err
}

// free unmaps the memory of an array; of other data only the variable ends.
func (a *array) free() (err error) {
	if a.store != nil {
		a.store(nil)
	}
	a.came = nil
	if a.shared != nil {
		err = a.shared.Close()
		a.shared = nil
	}
	return err
}

// freeAll ends all arrays, and those that were unregistered.
func (m *Module) freeAll() (err error) {
	for _, a := range m.arrays {
		if a.shared != nil {
			err = errors.Join(err, a.free())
		}
	}
	for _, x := range m.kept {
		err = errors.Join(err, x.Close())
	}
	m.kept = nil
	return err
}

// span is where the block of a rank lies.
func (a *array) span(s layout.Split, rank int) (r hostmem.Range) {
	for run := range s.Runs(rank) {
		r = hostmem.Range{Lo: run.At * a.Bytes, Hi: (run.At + run.Len) * a.Bytes}
	}
	return r
}

func (a *array) at(r hostmem.Range) []byte { return a.shared.Bytes()[r.Lo:r.Hi:r.Hi] }

// inPlace says whether the variable is the block of a rank.
func (a *array) inPlace(rank int) bool {
	want, is := a.at(a.span(a.split, rank)), a.memory()
	return len(is) == len(want) && (len(is) == 0 || &is[0] == &want[0])
}

// others is the method by which data moves that lies in no memory of the hosts.
func (c *Config) others() Method {
	if c.Method == InPlace {
		return Pull
	}
	return c.Method
}

// tell says which data does not move as it is configured.
func (m *Module) tell() {
	if m.config.Method != InPlace {
		return
	}
	var names []string
	for _, a := range m.arrays {
		if a.shared == nil && a.Rule.N > 0 {
			names = append(names, fmt.Sprintf("%q", a.Name))
		}
	}
	if len(names) > 0 {
		m.say(nil, fmt.Sprintf("method pull for %v, which are in no memory of the hosts", names))
	}
}

// occupy makes a rank's new block of an array memory that it may touch, before the commit:
// on a host of which another rank has had it that fills the page tables. In pieces between
// which it rests nothing new comes in huge pages, for which the kernel may hold up who
// computes.
func (a *adoption) occupy(x *move, p *pace) error {
	r := x.span(x.next, a.new)
	for at := r.Lo; at < r.Hi; {
		n := r.Hi - at
		if p.rests() {
			n = min(n, touchBytes)
		}
		var taken int64
		err := p.work(func() (err error) {
			taken, err = x.shared.Fill(hostmem.Range{Lo: at, Hi: at + n})
			return err
		})
		if err != nil {
			return fmt.Errorf("mam: %q: %d bytes of %d on rank %d of %d: %w", x.Name, r.Hi-r.Lo, x.Rule.N*x.Bytes, a.new, a.times.ND, err)
		}
		if p != nil {
			a.told(int(n))
		}
		if at += n; at < r.Hi && taken > 0 { // what is there costs less than a tenth
			if err := p.rest(); err != nil {
				return err
			}
		}
	}
	x.fresh = x.at(r)
	return nil
}

// moveArrays moves the arrays of a mode: what lies on the right host is there.
func (a *adoption) moveArrays(mode Mode) error {
	for i, x := range a.moves {
		if x.shared == nil || x.moved || x.Mode != mode {
			continue
		}
		if err := a.touch(x, nil); err != nil {
			return err
		}
		if err := a.findHomes(x); err != nil {
			return err
		}
		if err := a.carry(x, i); err != nil {
			return moveError(x, a, err)
		}
		x.moved = true
	}
	return nil
}

// findHomes finds out who of both has the same memory of arrays.
func (a *adoption) findHomes(x *move) error {
	if a.homes != nil {
		return nil
	}
	homes := make([]uint32, a.both.Size())
	if err := mpi.Allgather(a.comm(), []uint32{x.shared.Host()}, homes); err != nil {
		return err
	}
	a.homes = homes
	return nil
}

// carry sends what another host is to have to the same place in its memory, where until
// the commit nobody has it.
func (a *adoption) carry(x *move, tag int) error {
	me := a.both.Rank()
	bufs := a.comm().Bufs()
	var reqs requests
	var own []hostmem.Range // while it comes
	if a.old >= 0 {
		r := x.span(x.split, a.old)
		own = append(own, r)
		memory := x.at(r)
		for p := range layout.Sends(x.split, x.next, a.old) {
			if peer := a.to[p.To]; a.homes[peer] != a.homes[me] {
				from := memory[p.FromAt*x.Bytes : (p.FromAt+p.Len)*x.Bytes]
				_ = steps(int64(len(from)), func(lo, hi int64) error { // it cannot fail
					reqs.add(bufs.Isend(mpi.BufOf(from[lo:hi]), peer, tag), hi-lo)
					return nil
				})
			}
		}
	}
	before := own
	if a.new >= 0 {
		if err := x.shared.Own(append(own, x.span(x.next, a.new))...); err != nil {
			return errors.Join(err, a.wait(reqs))
		}
		for p := range layout.Receives(x.split, x.next, a.new) {
			if peer := a.from[p.From]; a.homes[peer] != a.homes[me] {
				to := x.fresh[p.ToAt*x.Bytes : (p.ToAt+p.Len)*x.Bytes]
				_ = steps(int64(len(to)), func(lo, hi int64) error { // likewise
					reqs.add(bufs.Irecv(mpi.BufOf(to[lo:hi]), peer, tag), hi-lo)
					return nil
				})
				x.from += int64(len(to))
			}
		}
	}
	return errors.Join(a.wait(reqs), x.shared.Own(before...))
}

// settle is what is to be done of arrays when a change is committed: a rank owns its new
// block alone, and one of each host gives back what that has no more.
func (a *adoption) settle() (err error) {
	for _, x := range a.moves {
		if x.shared == nil || a.new < 0 {
			continue
		}
		err = errors.Join(err, x.shared.Own(x.span(x.next, a.new)))
		home := a.homes[a.to[a.new]]
		var keep []hostmem.Range
		first := a.new
		for d, at := range a.to {
			if a.homes[at] == home {
				keep, first = append(keep, x.span(x.next, d)), min(first, d)
			}
		}
		if first == a.new && len(keep) < len(a.to) {
			err = errors.Join(err, x.shared.Punch(keep))
		}
	}
	return err
}
