// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// picky cannot be encoded if it is empty.
type picky string

func (p picky) GobEncode() ([]byte, error) {
	if p == "" {
		return nil, fmt.Errorf("nothing to say")
	}
	return []byte(p), nil
}

func (p *picky) GobDecode(b []byte) error {
	*p = picky(b)
	return nil
}

func TestCollectives(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		mine := strings.Repeat("x", 10*w.Rank())
		all := []string{"", strings.Repeat("x", 10), strings.Repeat("x", 20)}
		for root := range 3 {
			got, err := Gather(w, mine, root)
			must(t, err)
			if w.Rank() == root && !slices.Equal(got, all) || w.Rank() != root && got != nil {
				t.Fatalf("gathered %q", got)
			}
			var vs []string
			if w.Rank() == root {
				vs = all
			}
			one, err := Scatter(w, vs, root)
			must(t, err)
			if one != mine {
				t.Fatalf("scattered %q", one)
			}
			text, err := Reduce(w, fmt.Sprint(w.Rank()), func(a, b string) string { return a + b }, root)
			must(t, err)
			if w.Rank() == root && text != "012" || w.Rank() != root && text != "" {
				t.Fatalf("reduced to %q", text)
			}
		}
		got, err := Allgather(w, mine)
		must(t, err)
		if !slices.Equal(got, all) {
			t.Fatalf("gathered %q", got)
		}
		numbers, err := Alltoall(w, [][]int{{w.Rank()}, {w.Rank(), 1}, {}})
		must(t, err)
		for r, n := range numbers {
			if want := [][]int{{r}, {r, 1}, nil}[w.Rank()]; !slices.Equal(n, want) {
				t.Fatalf("from rank %d: %v, want %v", r, n, want)
			}
		}
	})
}

// What one rank cannot encode is an error of those who want it, and the next
// call is fine.
func TestCollectiveErrors(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		v := picky("text")
		if w.Rank() == 1 {
			v = ""
		}
		vs := []picky{"a", v, "c"}
		reasons := []string{"rank 1 cannot encode", "nothing to say", "rank 1 cannot encode"}
		for range 3 {
			_, err := Gather(w, v, 0)
			if w.Rank() == 2 {
				must(t, err)
			} else {
				want(t, err, mpi.ErrType, reasons[w.Rank()])
			}
			_, err = Allgather(w, v)
			want(t, err, mpi.ErrType, reasons[w.Rank()])
			_, err = Scatter(w, vs, 1)
			want(t, err, mpi.ErrType, reasons[w.Rank()])
			_, err = Alltoall(w, vs)
			want(t, err, mpi.ErrType, reasons[w.Rank()])
			_, err = Scatter(w, vs[:2], 0)
			want(t, err, mpi.ErrType, []string{"2 values for 3 ranks", "rank 0", "rank 0"}[w.Rank()])
			sum, err := Reduce(w, []int{w.Rank()}, func(a, b []int) []int { return append(a, b...) }, 2)
			must(t, err)
			if w.Rank() == 2 && !slices.Equal(sum, []int{0, 1, 2}) {
				t.Fatalf("reduced to %v", sum)
			}
		}
	})
}

func TestIrecv(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n = 20
		if w.Rank() == 0 {
			_, err := mpi.Recv(w, make([]int, 1), 1, 9) // they are all there
			must(t, err)
			for i := range n {
				must(t, Send(w, fmt.Sprint(i), 1, i%2))
			}
			must(t, Send(w, "last", 1, 2))
			return
		}
		var rs []*Receive[string]
		for i := range n {
			tag := i % 2
			if i%4 == 0 {
				tag = mpi.AnyTag
			}
			rs = append(rs, Irecv[string](w, 0, tag))
		}
		if rs[3].Test() {
			t.Fatal("a message is there that nobody has sent")
		}
		over, cancel := context.WithCancel(context.Background())
		never := Irecv[int](w.WithContext(over), 0, 77)
		must(t, mpi.Send(w, []int{1}, 0, 9))
		for i, r := range rs {
			if v, st, err := r.Wait(); err != nil || v != fmt.Sprint(i) || st.Source != 0 || st.Tag != i%2 || !r.Test() {
				t.Fatalf("%d: %q, %+v, %v", i, v, st, err)
			}
		}
		if v, _, err := Irecv[string](w, mpi.AnySource, 2).Wait(); v != "last" || err != nil {
			t.Fatal(v, err)
		}
		cancel()
		_, _, err := never.Wait()
		want(t, err, mpi.ErrCancelled, "tag 77")
		_, _, err = Irecv[int](w, 5, 0).Wait()
		want(t, err, mpi.ErrRank, "rank 5 of 2")
		if v, st, err := Irecv[int](w, mpi.ProcNull, 0).Wait(); v != 0 || st.Source != mpi.ProcNull || err != nil {
			t.Fatal(v, st, err)
		}
	})
}
