// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/internal/control/hostmem"
	"gompi/internal/resize/layout"
)

// Array registers distributed data that lies in memory of the hosts, and makes that memory: one
// piece for each host, made by the agent. *x becomes the block of the calling rank, zeroed. At a
// change of size nothing is copied on a host, whatever the method: *x becomes another part of the
// same memory. Between hosts ranges are sent at the commit, also of constant data. The layout
// must give ranks ranges in their order: Block, Weighted, Irregular, Rows and Entries, without
// least movement. With another layout the call is Distributed, in new memory.
//
// *x is nil before the call. The program does not assign it while the data is registered. The old
// block may be read until Finalize or Free. From the Checkpoint that commits a change on it shows
// the data of other ranks, or zeros if its host no longer has the range, and a write there
// overwrites their data. With GOMPI_CHECK=1 such a write is a fault, except in pages that a rank
// shares with its neighbours. Finalize and Free make *x nil.
//
// When a process dies its block is lost, as with Distributed: the memory is there, with what the
// process had written when it died.
//
// Everything else, also on a newcomer, is as with Distributed. If the memory cannot be had the
// error names it and its size. Local.
func Array[T any](m *Module, name string, x *[]T, l Layout, mode ...Mode) error {
	return register(m, &array{entry: entry{Name: name, Rule: l.l}, isArray: true}, x, mode)
}

// Free forgets data as Unregister does, and releases its memory: the variable becomes nil, and
// slices of an Array may not be used any more. Collective like Unregister.
func (m *Module) Free(name string) error {
	a := m.named(name)
	if err := m.unregister("Free", name); err != nil {
		return err
	}
	return a.free()
}

// makeArray makes the memory of data that is registered by Array.
func (m *Module) makeArray(a *array) error {
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
		mine, block := m.newMemory(a.split.Count(rank) * a.Bytes)
		a.store(mine)
		a.givenBlock = block
		if bytes > 0 {
			m.printSettings(nil, fmt.Sprintf("%q, %v, does not lie in place: it moves as other data does", a.Name, Layout{a.Rule}))
		}
		return nil
	}
	if err == nil {
		r := a.byteRange(a.split, rank)
		if _, err = a.shared.Fill(r); err == nil {
			err = a.shared.Own(r)
		}
		if err == nil {
			a.store(a.bytesAt(r))
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

// free unmaps the memory of an array. For other data it only makes the variable nil.
func (a *array) free() (err error) {
	if a.store != nil {
		a.store(nil)
	}
	a.arrived = nil
	if a.shared != nil {
		err = a.shared.Close()
		a.shared = nil
	}
	return err
}

// freeAll frees all arrays, and the memory of those that were unregistered.
func (m *Module) freeAll() (err error) {
	for _, a := range m.arrays {
		if a.shared != nil {
			err = errors.Join(err, a.free())
		}
	}
	for _, x := range m.keptMemory {
		err = errors.Join(err, x.Close())
	}
	m.keptMemory = nil
	return err
}

// byteRange returns the bytes of the block of a rank.
func (a *array) byteRange(s layout.Split, rank int) (r hostmem.Range) {
	for run := range s.Runs(rank) {
		r = hostmem.Range{Lo: run.At * a.Bytes, Hi: (run.At + run.Len) * a.Bytes}
	}
	return r
}

func (a *array) bytesAt(r hostmem.Range) []byte { return a.shared.Bytes()[r.Lo:r.Hi:r.Hi] }

// inPlace reports whether the variable is the block of a rank.
func (a *array) inPlace(rank int) bool {
	want, is := a.bytesAt(a.byteRange(a.split, rank)), a.memory()
	return len(is) == len(want) && (len(is) == 0 || &is[0] == &want[0])
}
