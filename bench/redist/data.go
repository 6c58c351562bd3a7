// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"fmt"

	"gompi/mam"
	"gompi/mpi"
)

// value is what element i is.
func value(i int) uint64 { return uint64(i)*0x9e3779b97f4a7c15 + 1 }

// fill makes the data of a rank of the beginning.
func (l *lab) fill() {
	c, rule := l.m.Comm(), mam.Block(l.o.elems())
	l.x = make([]uint64, 0, rule.Count(c.Size(), c.Rank()))
	for at, n := range rule.Runs(c.Size(), c.Rank()) {
		for i := range n {
			l.x = append(l.x, value(at+i))
		}
	}
}

// check finds on all ranks whether each has its data. Collective.
func (l *lab) check() error {
	c := l.m.Comm()
	wrong, k := -1, 0
	for at, n := range l.m.Runs("x") {
		for i := at; i < at+n && wrong < 0; i++ {
			if k >= len(l.x) || l.x[k] != value(i) {
				wrong = i
			}
			k++
		}
	}
	if wrong < 0 && k != len(l.x) {
		wrong = l.o.elems()
	}
	most, err := mpi.AllreduceOne(c, wrong, mpi.Max)
	if err == nil && most >= 0 {
		err = fmt.Errorf("redist: of %d ranks some have wrong data, such as element %d of %d", c.Size(), most, l.o.elems())
	}
	return err
}
