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
	split layout.Split // among the current ranks

	load       func() []byte // returns the program's variable as it is now; nil: the program has not asked for the data yet
	store      func([]byte)  // makes memory the program's variable
	arrived    []byte        // on a newcomer, until the program asks for it
	givenBlock block         // what the program was given last
	value      Codec         // of encoded data, as the program has registered it

	isArray bool            // registered by Array
	shared  *hostmem.Memory // memory of the host in which it lies; nil: memory of this process

	marks *dirty.Marks // of marked data that was pre-copied; guarded by the module's mu
}

// Distributed registers data of which each rank has a part, by layout l: *x is the part of the
// calling rank. T has no pointers. From then on the module assigns the variable: at a commit *x
// becomes the part that the rank has afterwards. Until the decision *x keeps what it has, and
// slices of before stay as they were. Data is Variable unless mode is Constant or Marked.
//
// On a newcomer the data has come with Init, and *x becomes it, without a copy. An unknown name,
// another type or another layout is an error. All ranks register the same data, in the same
// order, before their first Checkpoint since Init or since a commit. Data that is registered
// later moves with the next change that has not begun. ErrChanging during a change. Local.
func Distributed[T any](m *Module, name string, x *[]T, l Layout, mode ...Mode) error {
	a := &array{entry: entry{Name: name, Rule: l.l}}
	return register(m, a, x, mode)
}

// Replicated registers data that is the same on all ranks: a newcomer gets it from one of the
// others. The length of *x does not change. Encoded is for values that have pointers or change
// their length. Everything else is as with Distributed. Local.
func Replicated[T any](m *Module, name string, x *[]T, mode ...Mode) error {
	n := 0
	if x != nil {
		n = len(*x)
	}
	return register(m, &array{entry: entry{Name: name, Replicated: true, Rule: layout.Layout{N: int64(n)}}}, x, mode)
}

// ReplicatedOne is Replicated for one value: a scalar, an array, a struct without pointers.
// Local.
func ReplicatedOne[T any](m *Module, name string, x *T, mode ...Mode) error {
	a := &array{entry: entry{Name: name, Replicated: true, One: true, Rule: layout.Layout{N: 1}}}
	if x == nil {
		return m.refuse("Register", mpi.ErrArg, fmt.Errorf("%q: no variable", name))
	}
	a.load = func() []byte { return bytesOf(sliceOfOne(x)) }
	a.store = func(b []byte) { copy(bytesOf(sliceOfOne(x)), b) }
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

// describe adds the type, and registers the array.
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

// setMode sets the mode, if the program has said one.
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

// register adds an array, or hands over one that has come to a newcomer.
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
			return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: its layout is %v, not %v%s", a.Name, Layout{b.Rule}, Layout{a.Rule}, b.layoutDifference(a)))
		}
		if b.Encoded {
			if err := b.decode(a.value); err != nil {
				return m.refuse(op, mpi.ErrType, err)
			}
		}
		b.load, b.store, b.value = a.load, a.store, a.value
		b.store(b.arrived)
		b.arrived = nil
		return nil
	}
	if m.role == Target && m.calls == 0 && !m.edited {
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("no data %q has come to this process", a.Name))
	}
	if len(m.arrays) == maxArrays {
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: %d data are registered, no more allowed", a.Name, maxArrays))
	}
	if !a.Replicated {
		var err error
		if a.split, err = a.Rule.Over(m.comm.Size()); err != nil {
			return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: %w", a.Name, err))
		}
		if a.isArray {
			if err := m.makeArray(a); err != nil {
				return m.refuse(op, mpi.ErrNoMemory, err)
			}
		}
		if err := a.checkLength(m.comm.Rank()); err != nil {
			return m.refuse(op, mpi.ErrCount, err)
		}
	}
	if err := m.add(a); err != nil {
		if a.isArray {
			err = errors.Join(err, a.free())
		}
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: %w", a.Name, err))
	}
	return nil
}

// add adds an array to the data of the next change.
func (m *Module) add(a *array) error {
	if err := m.registry(append(slices.Clone(m.arrays), a)).fits(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.published && m.isComing() {
		return ErrChanging
	}
	m.arrays = append(m.arrays, a)
	m.closeGate()
	return nil
}

// layoutDifference says in what two layouts differ whose texts are equal.
func (a *array) layoutDifference(b *array) string {
	if (Layout{a.Rule}).String() == (Layout{b.Rule}).String() {
		return ": it differs in weights, counts, extents or blocks"
	}
	return ""
}

// checkLength checks that the variable is as long as the layout says.
func (a *array) checkLength(rank int) error {
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

// memory returns the data as it is now: the program's variable, or what has come, as long as the
// program has not asked for it.
func (a *array) memory() []byte {
	if a.load == nil {
		return a.arrived
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

// Runs returns the elements of distributed data that the calling rank has now: for each run the
// number of its first element in the whole, and its length. Nothing for data that is not
// registered. Local.
func (m *Module) Runs(name string) iter.Seq2[int, int] {
	a := m.named(name)
	if a == nil || a.Replicated || m.comm == nil {
		return func(func(int, int) bool) {}
	}
	return runsOf(a.split, m.comm.Rank())
}

// LostError is the error of a change in which distributed data is missing because processes that
// had it have died.
type LostError struct {
	Name  string
	Ranks []int    // that had it, before the change
	Runs  [][2]int // elements: the first, and how many
}

func (e *LostError) Error() string {
	return fmt.Sprintf("mam: of %q the elements %v are lost with ranks %v", e.Name, e.Runs, e.Ranks)
}

// Unwrap returns the class of failed processes.
func (e *LostError) Unwrap() error { return mpi.ErrProcFailed }

// lostData returns the error for the distributed data that dead ranks had.
func lostData(arrays []*array, dead []int) error {
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
