// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"gompi/internal/base/settings"
	"gompi/internal/host/dirty"
	"gompi/internal/resize/layout"
	"gompi/mpi"
	"gompi/rma"
	"gompi/sessions"
)

// Variable data moves in the background, too, as follows. Sources that see a change coming
// watch what is written to their parts from now on, lend them to readers, and say so;
// targets read them, while the sources compute; and at the commit, behind the last write,
// sources tell what was written meanwhile, and only that is read again (again.go). What
// cannot be watched is not lent, and read whole at the commit.

// leastLent is the size of data, of all ranks, from which on it is worth lending.
const leastLent = 64 << 10

// With the other methods sources move copies of what they lend, and what was written since
// is read again likewise (moveLent).

// lent reports whether data may be lent: the same on all.
func (e *entry) lent() bool {
	return e.Mode == Variable && !e.One && !e.Encoded && e.Shared == "" && e.Rule.N*e.Bytes >= leastLent
}

// lends reports whether some data is, in this change.
func (a *adoption) lends() bool {
	return a.config.early() && slices.ContainsFunc(a.moves, func(x *move) bool { return x.lent() })
}

// loan is a source's part of data from when it was lent until the change is over.
type loan struct {
	memory  []byte
	watch   dirty.Watch
	exposed *rma.Exposed
}

func (l *loan) close(m *Module) {
	_ = l.exposed.Close() // once
	m.mu.Lock()
	m.ended = append(m.ended, l.watch)
	m.mu.Unlock()
	m.done.Go(m.disarm) // some 30 us a MiB
}

// disarm ends watches of loans that are over. Until then their memory is held.
func (m *Module) disarm() {
	m.disarming.Lock()
	defer m.disarming.Unlock()
	m.mu.Lock()
	list := m.ended
	m.ended = nil
	m.mu.Unlock()
	for _, w := range list {
		_ = w.Disarm() // of an open tracker it fails for nothing that can be mended
	}
}

// lentKey is where a source says, in the store of the result, what it lends; readKey where
// a newcomer says that it has read.
func lentKey(rank int) string { return fmt.Sprintf("gompi.mam.lent.%d", rank) }
func readKey(rank int) string { return fmt.Sprintf("gompi.mam.read.%d", rank) }

// lentHead is before the offers of a source: edition and number of data (uint32 each).
const lentHead = 8

// lend lends what this source has of variable data, and tells. Nobody but the goroutine
// that prepares changes calls it.
func (a *adoption) lend(store *sessions.Store) error {
	b := make([]byte, lentHead+offerBytes*len(a.moves))
	binary.LittleEndian.PutUint32(b, uint32(a.edition))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(a.moves)))
	a.lendAll()
	for i, x := range a.moves {
		l := a.loans[x.array]
		if l == nil {
			continue
		}
		putOffer(b[lentHead+i*offerBytes:], l.exposed.Key(), len(l.memory))
	}
	return store.Put(lentKey(a.old), b)
}

// lendAll lends what this source has, as far as it can be watched. It waits until the program
// is in a Checkpoint: there no operation of the library is under way in its data, of which
// another process may have looked the pages up before, to write to them later.
func (a *adoption) lendAll() {
	a.m.computing.Lock()
	defer a.m.computing.Unlock()
	a.m.disarm()
	a.loans = map[*array]*loan{}
	for _, x := range a.moves {
		if !x.lent() {
			continue
		}
		l, err := a.m.lendOne(x.array)
		if err != nil {
			a.m.mention(a.old, fmt.Sprintf("%q moves at the commit: %v", x.Name, err))
			continue
		}
		a.loans[x.array] = l
	}
}

// moveLent moves variable data before the change is handed out by a method of which sources
// have their part: copies of it, as they go on writing. What one source cannot lend is left
// out by all.
func (a *adoption) moveLent() error {
	can := make([]int8, len(a.moves))
	if a.old >= 0 {
		a.lendAll()
	}
	for i, x := range a.moves {
		if x.lent() && (a.old < 0 || a.has(x) == 0 || a.loans[x.array] != nil && int64(len(a.loans[x.array].memory)) == a.has(x)) {
			can[i] = 1
		}
	}
	all := make([]int8, len(can))
	if err := mpi.Allreduce(a.comm(), can, all, mpi.Min); err != nil {
		return err
	}
	for i, x := range a.moves {
		if x.ahead = all[i] == 1; !x.ahead || a.old < 0 {
			continue
		}
		x.have, _ = a.m.fresh(a.has(x))
		if l := a.loans[x.array]; l != nil {
			r := &reader{pace: a.pace}
			if err := r.pieces(x.have, 0, func(to []byte, at int64) error { return dirty.Copy(to, l.memory[at:]) }); err != nil {
				return err
			}
		}
	}
	err := a.move(func(x *move) bool { return x.ahead })
	for _, x := range a.moves {
		if !x.ahead {
			continue
		}
		x.have, x.moved, x.soon = nil, false, x.from
		a.times.Early += x.soon
		for s := range a.from {
			x.borrow(s)
		}
	}
	return err
}

// has is how many bytes of data this source has.
func (a *adoption) has(x *move) int64 {
	if x.Replicated {
		return x.Rule.N * x.Bytes
	}
	return x.split.Count(a.old) * x.Bytes
}

var (
	errStored    = errors.New("others may store to it, and it is not marked")
	errUntracked = errors.New(settings.MamTrack.Env + "=off")
)

// lendOne lends the memory that data has; the program is in a Checkpoint.
func (m *Module) lendOne(x *array) (l *loan, err error) {
	l = &loan{memory: x.memory()}
	switch {
	case len(l.memory) == 0:
		return nil, errors.New("this rank has none of it")
	case x.Marked:
		l.watch = m.marksOf(x, int64(len(l.memory))).Arm()
	case rma.Stored(m.process, l.memory):
		return nil, errStored
	default:
		if m.tracker == nil && m.untracked == nil {
			m.tracker, m.untracked = m.openTracker()
		}
		if m.untracked != nil {
			return nil, m.untracked
		}
		if l.watch, err = m.tracker.Arm(l.memory); err != nil {
			return nil, err
		}
	}
	if l.exposed, err = rma.ExposeLive(m.process, l.memory); err != nil {
		return nil, errors.Join(err, l.watch.Disarm())
	}
	return l, nil
}

// marksOf are the marks of data, of so many bytes.
func (m *Module) marksOf(x *array, bytes int64) *dirty.Marks {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.marks == nil || x.marks.Bytes() != bytes {
		x.marks = dirty.NewMarks(bytes)
	}
	return x.marks
}

// openTracker makes what tells writes that are not marked, if it may be used.
func (m *Module) openTracker() (*dirty.Tracker, error) {
	if m.process.Core().Process().Setting(settings.MamTrack.Env) == "off" {
		return nil, errUntracked
	}
	return dirty.Open()
}

// mention prints something, of rank 0, if gompirun was asked to be verbose.
func (m *Module) mention(rank int, text string) {
	if m.verbose && rank == 0 {
		fmt.Fprintln(os.Stderr, "mam:", text)
	}
}

// borrow reads what sources lend of the data that this process is to have, and leaves the
// reader open for what is to be read again.
func (a *adoption) borrow(ctx context.Context, store *sessions.Store) error {
	r := &reader{a: a, ctx: ctx, offers: map[int][]byte{}, opened: map[[2]int]*rma.Remote{}, list: a.moves, told: a.told}
	a.borrower = r
	r.pace = a.paced(ctx)
	for i, x := range a.moves {
		if !x.lent() || x.Replicated && a.old >= 0 {
			continue
		}
		if err := a.touch(x, r.pace); err != nil {
			return err
		}
		if x.fresh == nil {
			continue
		}
		if err := r.askLent(store, i); err != nil {
			return err
		}
		was := x.from
		if err := r.readLent(i); err != nil {
			return moveError(x, a, err)
		}
		x.soon = x.from - was
		a.times.Early += x.soon
	}
	return nil
}

// askLent gets the offers of those sources that have a part of an array.
func (r *reader) askLent(store *sessions.Store, array int) error {
	var keys []string
	var ranks []int
	r.sources(array, func(rank int) {
		if _, ok := r.offers[rank]; !ok && rank != r.a.old {
			r.offers[rank] = nil
			keys, ranks = append(keys, lentKey(rank)), append(ranks, rank)
		}
	})
	for len(keys) > 0 {
		n := min(len(keys), sessions.MaxKeys)
		values, err := store.Get(r.ctx, true, keys[:n]...)
		if err != nil {
			return err
		}
		for i, v := range values {
			if r.offers[ranks[i]], err = r.a.parseLent(ranks[i], v); err != nil {
				return err
			}
		}
		keys, ranks = keys[n:], ranks[n:]
	}
	return nil
}

// parseLent checks what a source has said of what it lends, and gives its offers.
func (a *adoption) parseLent(rank int, v []byte) ([]byte, error) {
	le := binary.LittleEndian
	switch {
	case len(v) < lentHead:
		return nil, fmt.Errorf("mam: rank %d lends by %d bytes", rank, len(v))
	case le.Uint32(v) != uint32(a.edition) || le.Uint32(v[4:]) != uint32(len(a.moves)):
		return nil, a.m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf("rank %d: %w", rank, errStale))
	case len(v) != lentHead+offerBytes*len(a.moves):
		return nil, fmt.Errorf("mam: rank %d lends %d data by %d bytes", rank, len(a.moves), len(v))
	}
	return v[lentHead:], nil
}

// lentBy reports whether a source lends its part of an array.
func (r *reader) lentBy(array, rank int) bool {
	if rank == r.a.old {
		return r.a.loans[r.list[array].array] != nil
	}
	b := r.offers[rank]
	return len(b) >= (array+1)*offerBytes && rma.Key(b[array*offerBytes:]) != rma.Key{}
}

// readLent reads this process's part of an array, as far as it is lent.
func (r *reader) readLent(array int) error {
	x, a := r.list[array], r.a
	if x.Replicated {
		if rank := a.replica(); r.lentBy(array, rank) {
			x.borrow(rank)
			return r.from(array, rank, x.Rule.N*x.Bytes, x.fresh, 0)
		}
		return nil
	}
	for p := range layout.Receives(x.split, x.next, a.new) {
		if !r.lentBy(array, p.From) {
			continue
		}
		x.borrow(p.From)
		to, at := x.fresh[p.ToAt*x.Bytes:(p.ToAt+p.Len)*x.Bytes], p.FromAt*x.Bytes
		if p.From != a.old {
			if err := r.from(array, p.From, x.split.Count(p.From)*x.Bytes, to, at); err != nil {
				return err
			}
			continue
		}
		mine := a.loans[x.array].memory
		if err := r.pieces(to, at, func(to []byte, at int64) error { return dirty.Copy(to, mine[at:]) }); err != nil {
			return err
		}
	}
	return nil
}

// borrow notes that what a source has of an array was read in the background.
func (x *move) borrow(rank int) {
	if x.borrowed == nil {
		x.borrowed = map[int]bool{}
	}
	x.borrowed[rank] = true
}

// lendAndBorrow is the part of a process in the background: what a source has is lent, what a
// target is to have is borrowed. The first source returns when newcomers have read, too,
// so that no member is handed the change before.
func (a *adoption) lendAndBorrow(ctx context.Context) error {
	store, err := a.m.s.Store(a.c.Result)
	if err != nil {
		return err
	}
	start := time.Now()
	if a.old >= 0 {
		if err := a.lend(store); err != nil {
			return err
		}
	}
	if a.new >= 0 {
		if err := a.borrow(ctx, store); err != nil {
			return err
		}
	}
	a.times.Async += a.times.spent(Background, start)
	if a.old < 0 {
		return store.Put(readKey(a.new), nil)
	}
	if a.from[a.old] != 0 {
		return nil
	}
	for d := len(a.stay); d < len(a.to); {
		var keys []string
		for ; d < len(a.to) && len(keys) < sessions.MaxKeys; d++ {
			keys = append(keys, readKey(d))
		}
		if _, err := store.Get(ctx, true, keys...); err != nil {
			return err
		}
	}
	return nil
}
