// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"fmt"
	"runtime/debug"

	"gompi/mam"
	"gompi/mpi"
)

// value is what element i is.
func value(i int) uint64 { return uint64(i)*0x9e3779b97f4a7c15 + 1 }

// register makes the data known to the module, and makes it if it is not there: by
// newcomers it is taken over. With method INPLACE it lies in memory of the hosts.
func (l *lab) register() error {
	rule := mam.Block(l.o.elems())
	if l.array = l.m.Config().Method == mam.InPlace; l.array {
		if err := mam.Array(l.m, "x", &l.x, rule, mam.Constant); err != nil || l.came {
			return err
		}
		l.fill()
		return nil
	}
	if !l.came {
		l.x = make([]uint64, rule.Count(l.m.Comm().Size(), l.m.Comm().Rank()))
		l.fill()
	}
	return mam.Distributed(l.m, "x", &l.x, rule, mam.Constant)
}

// suit registers data anew if it does not lie where the method now has it. Collective, of
// the ranks that there are.
func (l *lab) suit() error {
	if l.array == (l.m.Config().Method == mam.InPlace) {
		return nil
	}
	if err := l.m.Free("x"); err != nil {
		return err
	}
	l.x, l.came = nil, false
	debug.FreeOSMemory()
	return l.register()
}

// fill makes the data of this rank.
func (l *lab) fill() {
	c, k := l.m.Comm(), 0
	for at, n := range mam.Block(l.o.elems()).Runs(c.Size(), c.Rank()) {
		for i := range n {
			l.x[k] = value(at + i)
			k++
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
