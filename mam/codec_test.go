// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// words is a value with pointers that encodes itself: of no words to no bytes.
type words map[string]string

func wordsOf(n int) words {
	w := words{}
	for i := range n % 8 {
		w[fmt.Sprint("word ", i)] = strings.Repeat("-", n)
	}
	return w
}

func (w words) bytes() (n int) {
	for key, word := range w {
		n += len(key) + len(word) + 2
	}
	return n
}

func (w words) MarshalBinary() (b []byte, err error) {
	for key, word := range w {
		b = fmt.Appendf(b, "%s=%s;", key, word)
	}
	return b, nil
}

var errNoWord = errors.New("it is no word")

func (w *words) UnmarshalBinary(b []byte) error {
	*w = words{}
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte(";"))
		key, word, found := strings.Cut(string(line), "=")
		if !found {
			return errNoWord
		}
		(*w)[key], b = word, rest
	}
	return nil
}

// text is a value of any length, with faults at will.
type text struct {
	s           *string
	read, write error
}

func (t *text) MarshalBinary() ([]byte, error) {
	if t.write != nil {
		return nil, t.write
	}
	return []byte(*t.s), nil
}

func (t *text) UnmarshalBinary(b []byte) error {
	if t.read != nil {
		return t.read
	}
	s := string(b)
	t.s = &s
	return nil
}

// What cannot be registered as an encoded value is refused.
func TestEncodedRefuses(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) {
		m, _, err := mam.Init(t.Context(), world, mam.Config{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Finalize()
		wantError(t, mam.Encoded(m, "x", nil), mpi.ErrArg, `"x": no variable`)
		wantError(t, mam.Encoded(m, "x", (*words)(nil)), mpi.ErrArg, "no variable")
		wantError(t, mam.Encoded(m, "x", new(words), mam.Marked), mpi.ErrArg, "one encoded value, marked data")
		wantError(t, mam.Encoded(m, "x", new(words), mam.Constant, mam.Constant), mpi.ErrArg, "modes")
		wantError(t, mam.Encoded(m, "", new(words)), mpi.ErrArg, "a name of 0 bytes")
		wantError(t, mam.Encoded(m, "x", &text{write: errNoWord}, mam.Constant), mpi.ErrType, `"x", a value of type *mam_test.text, cannot be encoded: it is no word`)
		if err := mam.Encoded(m, "x", new(words)); err != nil {
			t.Error(err)
		}
		wantError(t, mam.Encoded(m, "x", new(words)), mpi.ErrArg, "registered already")
	})
}

// Newcomers get values of other lengths in each change, also from newcomers, and from those
// that have not asked for theirs. Who asks by another type or kind, or with a decoder that
// fails, is refused, and may ask again.
func TestEncodedHandOver(t *testing.T) {
	for _, config := range []mam.Config{{Method: mam.COL}, {Method: mam.RMALockall, Strategy: mam.WaitDrains}, {Method: mam.Pull, Strategy: mam.WaitDrains}} {
		for _, transport := range []string{"inproc", "shm", "tcp"} {
			t.Run(fmt.Sprint(config.Method, "/", transport), func(t *testing.T) {
				mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) { handsOver(t, world, config) }, mpitest.Transport(transport))
			})
		}
	}
}

func handsOver(t *mpitest.T, world *mpi.Comm, config mam.Config) {
	lengths := map[int]int{2: 0, 3: 3 << 20, 6: 3 << 20, 7: 17} // by the number of ranks from then on
	next := map[int]int{1: 2, 2: 3, 3: 6, 6: 7}
	const last, late = 7, 2 // a rank that asks for nothing before the last change
	m, role, err := mam.Init(t.Context(), world, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Finalize()
	register := func(x *text, c *words) {
		if err := errors.Join(mam.Encoded(m, "x", x), mam.Encoded(m, "c", c, mam.Constant)); err != nil {
			t.Fatal(err)
		}
	}
	value := func(size int) string { return strings.Repeat("v", lengths[size]) }
	x, c, registered := new(text), wordsOf(7), role == mam.Source
	if registered {
		register(x, &c)
	} else {
		c = nil
	}
	came := m.Comm().Size()
	for size := came; ; {
		if !registered && (m.Comm().Rank() != late || size == last) {
			wantError(t, mam.Encoded(m, "x", &c), mpi.ErrType, "*mam_test.text")
			wantError(t, mam.ReplicatedOne(m, "x", new(int)), mpi.ErrType, "*mam_test.text")
			wantError(t, mam.Encoded(m, "x", x, mam.Constant), mpi.ErrArg, "encoded value, variable data, not one encoded value, constant data")
			x.read = errNoWord
			err := mam.Encoded(m, "x", x)
			wantError(t, err, mpi.ErrType, fmt.Sprintf(`"x", a value of type *mam_test.text, cannot be decoded from %d bytes: it is no word`, len(value(came))))
			if !errors.Is(err, errNoWord) {
				t.Error(err)
			}
			x.read = nil
			register(x, &c)
			if registered = true; *x.s != value(came) {
				t.Errorf("of %d ranks rank %d has a value of %d bytes, not %d", size, m.Comm().Rank(), len(*x.s), len(value(came)))
			}
		}
		if registered && !maps.Equal(c, wordsOf(7)) {
			t.Errorf("of %d ranks rank %d has %v", size, m.Comm().Rank(), c)
		}
		if size == last {
			break
		}
		if registered {
			s := value(next[size])
			x.s = &s
		}
		if err := m.SetTarget(next[size]); err != nil {
			t.Fatal(err)
		}
		was := x.s
		for m.Comm().Size() == size {
			if _, err := m.Checkpoint(mam.Wait); err != nil {
				t.Fatal(err)
			}
		}
		if size = m.Comm().Size(); x.s != was {
			t.Errorf("of %d ranks rank %d has another value", size, m.Comm().Rank())
		}
	}
	if err := m.Comm().Barrier(); err != nil {
		t.Error(err)
	}
}

// notEncoded: a source cannot encode its value; that change is rolled back, which the source
// is told why, and the next one happens.
func notEncoded(config mam.Config) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		user := func(u *mam.User) error { u.Resume(); return nil }
		m, role, err := mam.Init(ctx, world, config, user)
		if err != nil {
			return err
		}
		defer m.Finalize()
		x, s := new(text), "value"
		if role == mam.Source {
			if x.s = &s; m.Comm().Rank() == 1 {
				x.write = errNoWord
			}
		}
		if err := mam.Encoded(m, "x", x); err != nil {
			return err
		}
		failed := role == mam.Target
		for m.Comm().Size() != 5 {
			time.Sleep(iterationTime) //archtest:sleep an iteration of the program
			if err := m.SetTarget(5); err != nil {
				return err
			}
			state, err := m.Checkpoint(mam.Check)
			if x.write != nil && errors.Is(err, errNoWord) {
				const want = `"x", a value of type *mam_test.text, cannot be encoded: it is no word`
				if failed || state != mam.NotStarted || !errors.Is(err, mpi.ErrType) || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("%v, %w", state, err)
				}
				failed, x.write, err = true, nil, nil
			}
			if err != nil {
				return err
			}
		}
		if *x.s != "value" || role == mam.Source && m.Comm().Rank() == 1 && !failed {
			return fmt.Errorf("rank %d has %q, failed %v", m.Comm().Rank(), *x.s, failed)
		}
		return m.Comm().Barrier()
	}
}
