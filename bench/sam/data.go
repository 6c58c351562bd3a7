// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"fmt"

	"gompi/mam"
)

// sizes are the bytes that an element may have.
var sizes = []int{1, 2, 4, 8}

// data is what is redistributed: elements that say which ones they are.
type data interface {
	// register makes this rank's part known to the module, in memory of the host if inPlace,
	// and makes it, or takes over what has come.
	register(m *mam.Module, inPlace, came bool) error
	// free gives it up. Collective.
	free(m *mam.Module) error
	// check looks at each element of this rank.
	check(m *mam.Module) error
}

// dataOf are the variable data, and the constant data, of a configuration.
func dataOf(c *Config) (list []data) {
	for _, d := range []struct {
		name  string
		bytes int64
		mode  mam.Mode
	}{{"SDR", c.SDR, mam.Variable}, {"ADR", c.ADR, mam.Constant}} {
		n := int((d.bytes + int64(c.Datasize) - 1) / int64(c.Datasize))
		switch {
		case n == 0:
		case c.Datasize == 1:
			list = append(list, &block[uint8]{name: d.name, n: n, mode: d.mode})
		case c.Datasize == 2:
			list = append(list, &block[uint16]{name: d.name, n: n, mode: d.mode})
		case c.Datasize == 4:
			list = append(list, &block[uint32]{name: d.name, n: n, mode: d.mode})
		default:
			list = append(list, &block[uint64]{name: d.name, n: n, mode: d.mode})
		}
	}
	return list
}

type block[T uint8 | uint16 | uint32 | uint64] struct {
	name string
	n    int
	mode mam.Mode
	x    []T
}

// value is what element i is: neighbours and blocks of a power of two differ.
func value[T uint8 | uint16 | uint32 | uint64](i int) T {
	return T(uint64(i) * 0x9e3779b97f4a7c15 >> 40)
}

func (b *block[T]) register(m *mam.Module, inPlace, came bool) error {
	layout := mam.Block(b.n)
	if inPlace {
		if err := mam.Array(m, b.name, &b.x, layout, b.mode); err != nil || came {
			return err
		}
		b.fill(m)
		return nil
	}
	if !came {
		b.x = make([]T, layout.Count(m.Comm().Size(), m.Comm().Rank()))
		b.fill(m)
	}
	return mam.Distributed(m, b.name, &b.x, layout, b.mode)
}

// fill makes the elements that a rank has before any change.
func (b *block[T]) fill(m *mam.Module) {
	k := 0
	for at, n := range mam.Block(b.n).Runs(m.Comm().Size(), m.Comm().Rank()) {
		for i := range n {
			b.x[k] = value[T](at + i)
			k++
		}
	}
}

func (b *block[T]) free(m *mam.Module) error {
	b.x = nil
	return m.Free(b.name)
}

func (b *block[T]) check(m *mam.Module) error {
	k := 0
	for at, n := range m.Runs(b.name) {
		for i := at; i < at+n; i++ {
			if k >= len(b.x) || b.x[k] != value[T](i) {
				return fmt.Errorf("sam: %s has not element %d of %d as number %d of the %d of rank %d of %d", b.name, i, b.n, k, len(b.x), m.Comm().Rank(), m.Comm().Size())
			}
			k++
		}
	}
	if k != len(b.x) {
		return fmt.Errorf("sam: %s has %d elements on rank %d of %d, not %d", b.name, len(b.x), m.Comm().Rank(), m.Comm().Size(), k)
	}
	return nil
}
