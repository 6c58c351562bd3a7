// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"gompi/internal/control/hostmem"
	"gompi/internal/host/dirty"
	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// array is data that was registered.
type array struct {
	entry
	split layout.Split // among the ranks there are now

	load  func() []byte // the program's variable as it is now; nil: the program has not asked for it yet
	store func([]byte)  // makes memory the program's variable
	came  []byte        // of a newcomer, until the program asks for it
	given block         // what the program was given last
	value Codec         // of encoded data, what the program has registered

	made   bool            // by Array
	shared *hostmem.Memory // in which it lies; nil: in memory of this process

	marks *dirty.Marks // if it is marked, and was lent; guarded by the module's mu
}

// Distributed registers data of which each rank has what layout l says: *x is the block
// of the calling rank. T has no pointers. From then on the module owns the variable in
// this sense: at a commit *x becomes the block that the rank has afterwards. Until the
// decision it keeps what it has; a slice of before stays what it was. Data is Variable
// unless Constant is said.
//
// On a newcomer the data has come with Init, and *x becomes it, without a copy; an
// unknown name, another type or another layout is an error. All ranks register the same
// data, in the same order, before their first Checkpoint since Init or since a commit;
// what is registered later moves with the next change that has not begun. During a change
// it is an error. Local.
func Distributed[T any](m *Module, name string, x *[]T, l Layout, mode ...Mode) error {
	a := &array{entry: entry{Name: name, Rule: l.l}}
	return register(m, a, x, mode)
}

// Replicated registers data of which all ranks have the same: a newcomer gets it from one
// of the others. The length of *x does not change; for what has pointers, or changes its
// length, there is Encoded. Otherwise it is like Distributed.
func Replicated[T any](m *Module, name string, x *[]T, mode ...Mode) error {
	n := 0
	if x != nil {
		n = len(*x)
	}
	return register(m, &array{entry: entry{Name: name, Replicated: true, Rule: layout.Layout{N: int64(n)}}}, x, mode)
}

// ReplicatedOne is Replicated of one value: a scalar, an array, a struct without
// pointers.
func ReplicatedOne[T any](m *Module, name string, x *T, mode ...Mode) error {
	a := &array{entry: entry{Name: name, Replicated: true, One: true, Rule: layout.Layout{N: 1}}}
	if x == nil {
		return m.refuse("Register", mpi.ErrArg, fmt.Errorf("%q: no variable", name))
	}
	a.load = func() []byte { return bytesOf(one(x)) }
	a.store = func(b []byte) { copy(bytesOf(one(x)), b) }
	return describe[T](m, a, mode)
}

func register[T any](m *Module, a *array, x *[]T, mode []Mode) error {
	if x == nil {
		return m.refuse("Register", mpi.ErrArg, fmt.Errorf("%q: no variable", a.Name))
	}
	a.load = func() []byte { return bytesOf(*x) }
	a.store = func(b []byte) { *x = sliceOf[T](b) }
	return describe[T](m, a, mode)
}

// describe adds what is of the type, and registers.
func describe[T any](m *Module, a *array, mode []Mode) error {
	const op = "Register"
	dt := mpi.TypeOf[T]()
	if err := dt.Err(); err != nil {
		return m.refuse(op, mpi.ErrType, fmt.Errorf("%q: %w", a.Name, err))
	}
	if dt.Size() == 0 {
		return m.refuse(op, mpi.ErrType, fmt.Errorf("%q: elements of type %v have no bytes", a.Name, reflect.TypeFor[T]()))
	}
	if err := a.setMode(mode); err != nil {
		return m.refuse(op, mpi.ErrArg, err)
	}
	a.Type, a.Bytes = reflect.TypeFor[T]().String(), int64(reflect.TypeFor[T]().Size())
	return m.register(op, a)
}

// setMode takes the mode that the program may have said.
func (a *array) setMode(mode []Mode) error {
	if len(mode) > 1 || len(mode) == 1 && mode[0] > Marked {
		return fmt.Errorf("%q: modes %d", a.Name, mode)
	}
	if len(mode) == 1 {
		a.Mode = mode[0]
	}
	if a.Mode == Marked {
		a.Mode, a.Marked = Variable, true
	}
	return nil
}

// register takes an array in, or hands over one that has come.
func (m *Module) register(op string, a *array) error {
	if err := m.open(op); err != nil {
		return err
	}
	if err := a.entry.check(); err != nil {
		return m.refuse(op, mpi.ErrArg, err)
	}
	if b := m.named(a.Name); b != nil {
		switch {
		case b.load != nil:
			return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q is registered already", a.Name))
		case a.Type != b.Type || a.Bytes != b.Bytes:
			return m.refuse(op, mpi.ErrType, fmt.Errorf("%q has elements of type %s (%d bytes), not %s (%d)", a.Name, b.Type, b.Bytes, a.Type, a.Bytes))
		case a.Encoded != b.Encoded || a.Replicated != b.Replicated || a.One != b.One || a.Mode != b.Mode || a.Marked != b.Marked:
			return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q is %s, not %s", a.Name, b.kind(), a.kind()))
		case !a.Replicated && !a.Rule.Same(&b.Rule):
			return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: its layout is %v, not %v%s", a.Name, Layout{b.Rule}, Layout{a.Rule}, b.unlike(a)))
		}
		if b.Encoded {
			if err := b.decode(a.value); err != nil {
				return m.refuse(op, mpi.ErrType, err)
			}
		}
		b.load, b.store, b.value = a.load, a.store, a.value
		b.store(b.came)
		b.came = nil
		return nil
	}
	if m.role == Target && m.calls == 0 && !m.changed {
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("no data %q has come to this process", a.Name))
	}
	if len(m.arrays) == mostArrays {
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: %d data are registered, no more allowed", a.Name, mostArrays))
	}
	if !a.Replicated {
		var err error
		if a.split, err = a.Rule.Over(m.comm.Size()); err != nil {
			return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: %w", a.Name, err))
		}
		if a.made {
			if err := m.lay(a); err != nil {
				return m.refuse(op, mpi.ErrNoMemory, err)
			}
		}
		if err := a.held(m.comm.Rank()); err != nil {
			return m.refuse(op, mpi.ErrCount, err)
		}
	}
	if err := m.add(a); err != nil {
		if a.made {
			err = errors.Join(err, a.free())
		}
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: %w", a.Name, err))
	}
	return nil
}

// add makes data part of what moves with the next change.
func (m *Module) add(a *array) error {
	if err := m.registry(append(slices.Clone(m.arrays), a)).fits(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admitted && m.isComing() {
		return ErrChanging
	}
	m.arrays = append(m.arrays, a)
	m.closeGate()
	return nil
}

// unlike says of two layouts that look alike what they differ in.
func (a *array) unlike(b *array) string {
	if (Layout{a.Rule}).String() == (Layout{b.Rule}).String() {
		return ": it differs in weights, counts, extents or blocks"
	}
	return ""
}

// held says whether the variable is as long as it has to be.
func (a *array) held(rank int) error {
	if a.Encoded {
		return nil
	}
	want := a.Rule.N
	if !a.Replicated {
		want = a.split.Count(rank)
	}
	if got := int64(len(a.memory())) / a.Bytes; got != want {
		return fmt.Errorf("%q has %d elements on rank %d, where its layout has %d", a.Name, got, rank, want)
	}
	if a.shared != nil && !a.inPlace(rank) {
		return fmt.Errorf("%q is another slice on rank %d than the block of the array that the module has made", a.Name, rank)
	}
	return nil
}

// memory is the data as it is now: the program's variable, or, as long as that has not
// asked for it, what has come.
func (a *array) memory() []byte {
	if a.load == nil {
		return a.came
	}
	return a.load()
}

func (m *Module) named(name string) *array {
	i := slices.IndexFunc(m.arrays, func(a *array) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return m.arrays[i]
}

// Runs are the elements of distributed data that the calling rank has now: the number of
// the first in the whole, and how many follow each other. None of what was not
// registered. Local.
func (m *Module) Runs(name string) iter.Seq2[int, int] {
	a := m.named(name)
	if a == nil || a.Replicated || m.comm == nil {
		return func(func(int, int) bool) {}
	}
	return runsOf(a.split, m.comm.Rank())
}

// LostError is that of a change in which distributed data is missing, since processes that
// had it have died.
type LostError struct {
	Name  string
	Ranks []int    // that had it, before the change
	Runs  [][2]int // which elements: the first, and how many
}

func (e *LostError) Error() string {
	return fmt.Sprintf("mam: of %q the elements %v are lost with ranks %v", e.Name, e.Runs, e.Ranks)
}

// Unwrap makes it an error of the class of failed processes.
func (e *LostError) Unwrap() error { return mpi.ErrProcFailed }

// lost says what of distributed data dead ranks had.
func lost(arrays []*array, dead []int) error {
	var all []error
	for _, a := range arrays {
		if a.Replicated {
			continue
		}
		e := &LostError{Name: a.Name, Ranks: dead}
		for _, r := range dead {
			for at, n := range runsOf(a.split, r) {
				e.Runs = append(e.Runs, [2]int{at, n})
			}
		}
		if len(e.Runs) > 0 {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}
