// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

type plan struct {
	Name  string
	Parts map[string][]int
	Next  *plan
}

type named interface{ name() string }

func (p plan) name() string { return p.Name }

// wild panics in its own decoder.
type wild struct{ N int }

func (w wild) GobEncode() ([]byte, error) { return []byte{byte(w.N)}, nil }
func (w *wild) GobDecode(b []byte) error  { panic(fmt.Sprintf("on %d bytes", len(b))) }

func overAll(t *testing.T, n int, f func(t *mpitest.T, w *mpi.Comm)) {
	for _, tr := range []string{"inproc", "shm", "tcp"} {
		t.Run(tr, func(t *testing.T) { mpitest.Run(t, n, f, mpitest.Transport(tr)) })
	}
}

func must(t *mpitest.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *mpitest.T, err error, class mpi.Class, part string) {
	t.Helper()
	if !errors.Is(err, class) || !strings.Contains(err.Error(), part) {
		t.Fatalf("error is %v, want class %v with %q", err, class, part)
	}
}

func example(n int) plan {
	big := make([]int, 20000)
	big[19999] = n
	return plan{Name: "a", Parts: map[string][]int{"x": {n, 2}, "big": big}, Next: &plan{Name: "b"}}
}

func same(p, q plan) bool {
	return p.Name == q.Name && p.Next.Name == q.Next.Name &&
		maps.EqualFunc(p.Parts, q.Parts, func(a, b []int) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
}

func TestSendRecv(t *testing.T) {
	gob.Register(plan{})
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if w.Rank() == 0 {
			must(t, Send(w, example(5), 1, 7))
			v := example(6)
			r := Isend(w, v, 1, 8)
			v.Parts["x"][0] = -1
			_, err := r.Wait()
			must(t, err)
			must(t, Send[named](w, plan{Name: "behind an interface"}, 1, 9))
			must(t, Send(w, "text", 1, 10))
			return
		}
		got, st, err := Recv[plan](w, mpi.AnySource, 7)
		if err != nil || !same(got, example(5)) || !st.Value || st.Source != 0 || st.Bytes == 0 {
			t.Fatalf("%v, %+v, %v", got.Name, st, err)
		}
		got, _, err = Recv[plan](w, 0, 8)
		if err != nil || !same(got, example(6)) {
			t.Fatal(got.Name, err)
		}
		i, _, err := Recv[named](w, 0, 9)
		if err != nil || i.name() != "behind an interface" {
			t.Fatal(i, err)
		}
		s, st, err := Recv[string](w, 0, mpi.AnyTag)
		if err != nil || s != "text" || st.Tag != 10 {
			t.Fatal(s, err)
		}
	})
}

func TestBcast(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for root := range 3 {
			v := plan{}
			if w.Rank() == root {
				v = example(root)
			}
			got, err := Bcast(w, v, root)
			if err != nil || !same(got, example(root)) {
				t.Fatal(got.Name, err)
			}
			// What root cannot encode is an error of all.
			_, err = Bcast(w, func() {}, root)
			want(t, err, mpi.ErrType, "value.Bcast")
		}
	})
}

func TestErrors(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if w.Rank() == 0 {
			want(t, Send(w, make(chan int), 1, 0), mpi.ErrType, "chan")
			_, err := Isend(w, struct{ hidden int }{1}, 1, 0).Wait()
			want(t, err, mpi.ErrType, "no exported fields")
			want(t, Send(w, 1, 5, 0), mpi.ErrRank, "rank 5 of 2")
			_, _, err = Recv[int](w, 0, -4)
			want(t, err, mpi.ErrTag, "tag -4")
			must(t, Send(w, 1, mpi.ProcNull, 0))
			if v, st, err := Recv[int](w, mpi.ProcNull, 0); v != 0 || st.Source != mpi.ProcNull || err != nil {
				t.Fatal(v, st, err)
			}
			must(t, Send(w, "no number", 1, 1))
			must(t, Send(w, wild{3}, 1, 2))
			must(t, w.Core().SendValue([]byte("\x00rubbish"), 1, 3))
			must(t, w.Core().SendValue(append([]byte{formStream}, append(encoded(1), 0)...), 1, 4))
			must(t, mpi.Send(w, []int{1}, 1, 5)) // elements
			must(t, Send(w, 1, 1, 6))
			must(t, Send(w, 1, 1, 7))
			must(t, Send(w, 1, 1, 8))
			return
		}
		_, _, err := Recv[int](w, 0, 1)
		want(t, err, mpi.ErrType, "string")
		_, _, err = Recv[wild](w, 0, 2)
		want(t, err, mpi.ErrType, "panic: on 1 bytes")
		_, _, err = Recv[int](w, 0, 3)
		want(t, err, mpi.ErrType, "7 bytes")
		_, _, err = Recv[int](w, 0, 4)
		want(t, err, mpi.ErrType, "1 of")
		_, _, err = Recv[int](w, 0, 5)
		want(t, err, mpi.ErrType, "do not match")
		_, err = mpi.Recv(w, make([]int, 9), 0, 6)
		want(t, err, mpi.ErrType, "do not match")
		_, _, err = mpi.RecvNew[int](w, 0, 7)
		want(t, err, mpi.ErrType, "do not match")
		_, _, err = w.Core().ReceiveValue(0, 8, 2)
		want(t, err, mpi.ErrTruncate, "0 expected")
	})
}

func encoded(v any) []byte {
	var w bytes.Buffer
	if err := gob.NewEncoder(&w).Encode(v); err != nil {
		panic(err)
	}
	return w.Bytes()
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(plan{Name: "a", Parts: map[string][]int{"x": {1, 2}}, Next: &plan{Name: "b"}}))
	f.Add(encoded(plan{}))
	f.Add([]byte("rubbish"))
	f.Add([]byte{})
	register()
	gob.Register(plan{})
	var v any = node{L: []any{nil, leaf{S: "l"}}, Sub: map[string]any{"o": other{}, "p": &inner1{}}}
	f.Add(encoded(&v))
	f.Add(encoded(v))
	f.Add(encoded(&everything{Any: v, Maps: map[string]map[int][]string{"": {1: {"x"}}}, Trees: forest{nil, {nil}}, Anys: []any{nil, v}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Memory goes with the bytes, not with the numbers in them.
		n := allocated(func() {
			decode(b, new(any))
			decode(b, new(node))
			decode(b, new(some))
			decode(b, new(everything))
		})
		if limit := uint64(8<<20 + 4096*len(b)); n > limit {
			t.Fatalf("%d bytes take %d bytes of memory", len(b), n)
		}
		var p plan
		n = allocated(func() {
			if decode(b, &p) != nil {
				return
			}
			// What was accepted can be sent on, and is the same there.
			var q plan
			cs := new(codecs)
			if again, err := cs.encode(&p); err != nil || cs.decode(again, &q) != nil || q.Name != p.Name {
				t.Fatalf("%v does not survive: %v", p, err)
			}
		})
		if limit := uint64(1<<20 + 1024*len(b)); n > limit {
			t.Fatalf("%d bytes take %d bytes of memory as a plan", len(b), n)
		}
	})
}
