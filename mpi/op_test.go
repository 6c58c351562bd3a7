// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"gompi/mpi"
	"gompi/mpitest"
)

type oracle[T any] map[*mpi.Op]func(a, b T) T

var allOps = []*mpi.Op{
	&mpi.Sum, &mpi.Prod, &mpi.Min, &mpi.Max, &mpi.BitAnd, &mpi.BitOr, &mpi.BitXor, &mpi.LogAnd, &mpi.LogOr, &mpi.LogXor,
	&mpi.MinLoc, &mpi.MaxLoc, &mpi.Replace, &mpi.NoOp,
}

// checkOps applies every operation to all pairs of values, several times over
// so that kernels leave their first steps; those the oracle does not know must
// be refused.
func checkOps[T any](t *testing.T, values []T, known oracle[T]) {
	t.Run(fmt.Sprintf("%T", *new(T)), func(t *testing.T) {
		var in, was []T
		for range 3 {
			for _, a := range values {
				for _, b := range values {
					in, was = append(in, a), append(was, b)
				}
			}
		}
		for _, op := range allOps {
			inout := append([]T(nil), was...)
			f := known[op]
			if f == nil {
				wantError(t, mpi.ReduceLocal(in, inout, *op), mpi.ErrOp, "ReduceLocal", op.String()+" of")
				continue
			}
			if err := mpi.ReduceLocal(in, inout, *op); err != nil {
				t.Fatal(err)
			}
			for i := range in {
				// In words, because a NaN is not equal to itself, but 0 is to -0.
				if got, want := fmt.Sprint(inout[i]), fmt.Sprint(f(in[i], was[i])); got != want {
					t.Fatalf("%v: %v and %v give %s, want %s", op, in[i], was[i], got, want)
				}
			}
		}
	})
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func truth[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}

func checkInteger[T integer](t *testing.T) {
	top := T(1)
	for top<<1 > top || top<<1 < 0 {
		top <<= 1
	}
	checkOps(t, []T{0, 1, 2, 7, 100, top, top - 1, top + 1, ^T(0), ^top, ^T(1)}, oracle[T]{
		&mpi.Sum:    func(a, b T) T { return a + b },
		&mpi.Prod:   func(a, b T) T { return a * b },
		&mpi.Min:    func(a, b T) T { return min(a, b) },
		&mpi.Max:    func(a, b T) T { return max(a, b) },
		&mpi.BitAnd: func(a, b T) T { return a & b },
		&mpi.BitOr:  func(a, b T) T { return a | b },
		&mpi.BitXor: func(a, b T) T { return a ^ b },
		&mpi.LogAnd: func(a, b T) T { return truth[T](a != 0 && b != 0) },
		&mpi.LogOr:  func(a, b T) T { return truth[T](a != 0 || b != 0) },
		&mpi.LogXor: func(a, b T) T { return truth[T]((a != 0) != (b != 0)) },
	})
}

func checkFloat[T ~float32 | ~float64](t *testing.T) {
	inf := T(math.Inf(1))
	checkOps(t, []T{0, T(math.Copysign(0, -1)), 1, -1, 0.1, 1e30, -1e30, 1e-38, inf, -inf, T(math.NaN())}, oracle[T]{
		&mpi.Sum:  func(a, b T) T { return a + b },
		&mpi.Prod: func(a, b T) T { return a * b },
		&mpi.Min:  func(a, b T) T { return min(a, b) },
		&mpi.Max:  func(a, b T) T { return max(a, b) },
	})
}

func checkComplex[T complex64 | complex128](t *testing.T) {
	checkOps(t, []T{0, 1, -1i, complex(2, -3), complex(-0.5, 4), complex(1024, 7)}, oracle[T]{
		&mpi.Sum:  func(a, b T) T { return a + b },
		&mpi.Prod: func(a, b T) T { return a * b },
	})
}

type (
	celsius float64
	count   int
	flags   uint16
)

func TestOps(t *testing.T) {
	checkInteger[int](t)
	checkInteger[int8](t)
	checkInteger[int16](t)
	checkInteger[int32](t)
	checkInteger[int64](t)
	checkInteger[uint](t)
	checkInteger[uint8](t)
	checkInteger[uint16](t)
	checkInteger[uint32](t)
	checkInteger[uint64](t)
	checkInteger[count](t)
	checkInteger[flags](t)
	checkFloat[float32](t)
	checkFloat[float64](t)
	checkFloat[celsius](t)
	checkComplex[complex64](t)
	checkComplex[complex128](t)
	checkOps(t, []bool{false, true}, oracle[bool]{
		&mpi.LogAnd: func(a, b bool) bool { return a && b },
		&mpi.LogOr:  func(a, b bool) bool { return a || b },
		&mpi.LogXor: func(a, b bool) bool { return a != b },
	})
	checkOps(t, []particle{{}}, nil)
	checkOps(t, [][2]int{{}}, nil)
	checkPair[int](t, []int{math.MinInt, -1, 0, 1, math.MaxInt})
	checkPair(t, []int8{-128, -1, 0, 127})
	checkPair(t, []int16{-1 << 15, 0, 1})
	checkPair(t, []int32{math.MinInt32, -1, 0, 5})
	checkPair(t, []int64{math.MinInt64, -1, 0, 5})
	checkPair(t, []uint{0, 1, math.MaxUint})
	checkPair(t, []uint8{0, 1, 128, 255})
	checkPair(t, []uint16{0, 1, 1 << 15})
	checkPair(t, []uint32{0, 1, 1 << 31})
	checkPair(t, []uint64{0, 1, 1 << 63})
	checkPair(t, []float32{float32(math.Inf(-1)), -1, float32(math.Copysign(0, -1)), 0, 2.5, float32(math.NaN())})
	checkPair(t, []float64{math.Inf(-1), -1, math.Copysign(0, -1), 0, 2.5, math.Inf(1), math.NaN()})
	checkPair(t, []celsius{-1, 0, 2.5})
}

// checkPair asks for the extreme of two: equal values tie.
func checkPair[T mpi.Real](t *testing.T, values []T) {
	type pair = mpi.ValueIndex[T]
	same := func(a, b T) bool { return a == b || a != a && b != b }
	to := func(extreme func(a, b T) T) func(a, b pair) pair {
		return func(a, b pair) pair {
			v := extreme(a.Value, b.Value)
			i := int64(math.MaxInt64)
			for _, p := range []pair{a, b} {
				if same(p.Value, v) {
					i = min(i, p.Index)
				}
			}
			return pair{v, i}
		}
	}
	var pairs []pair
	for _, v := range values {
		for _, i := range []int64{-1, 0, 3, 1 << 40} {
			pairs = append(pairs, pair{v, i})
		}
	}
	checkOps(t, pairs, oracle[pair]{
		&mpi.MinLoc: to(func(a, b T) T { return min(a, b) }),
		&mpi.MaxLoc: to(func(a, b T) T { return max(a, b) }),
	})
}

// Structs with the fields of ValueIndex are pairs, others are not.
func TestOwnPair(t *testing.T) {
	type pivot struct {
		Value float32
		Index int
	}
	in, inout := []pivot{{3, 7}}, []pivot{{3, 2}}
	if err := mpi.ReduceLocal(in, inout, mpi.MaxLoc); err != nil || inout[0] != (pivot{3, 2}) {
		t.Error(inout, err)
	}
	type short struct {
		Value float32
		Index int32
	}
	wantError(t, mpi.ReduceLocal([]short{{}}, []short{{}}, mpi.MaxLoc), mpi.ErrOp, "MaxLoc of mpi_test.short")
	type other struct {
		Value complex64
		Index int64
	}
	wantError(t, mpi.ReduceLocal([]other{{}}, []other{{}}, mpi.MinLoc), mpi.ErrOp)
	type more struct {
		Value float32
		Index int64
		What  int64
	}
	wantError(t, mpi.ReduceLocal([]more{{}}, []more{{}}, mpi.MinLoc), mpi.ErrOp)
}

func TestOpProperties(t *testing.T) {
	for _, op := range allOps {
		if want := op != &mpi.Replace && op != &mpi.NoOp; op.Commutative() != want {
			t.Errorf("%v is commutative: %v", op, op.Commutative())
		}
		if !utf8.ValidString(op.String()) || op.String() == "" {
			t.Errorf("operation without a name: %q", op)
		}
	}
	first := func(in, inout []int32) { copy(inout, in) }
	if mpi.NewOp(first).Ordered().Commutative() || !mpi.NewOp(first).Commutative() {
		t.Error("a user's operation is not what it was declared to be")
	}
}

func TestReduceLocalUser(t *testing.T) {
	op := mpi.NewOp(func(in, inout []string32) {
		for i := range in {
			inout[i] = in[i].add(inout[i])
		}
	}).Ordered()
	in, inout := []string32{word("a"), word("b")}, []string32{word("x"), word("y")}
	if err := mpi.ReduceLocal(in, inout, op); err != nil || inout[0] != word("ax") || inout[1] != word("by") {
		t.Error(inout, err)
	}
	wantError(t, mpi.ReduceLocal([]int{1}, []int{1}, op), mpi.ErrOp, "user operation of int")
	inout = []string32{word("x"), word("y")}
	op = mpi.OpOf(string32.add).Ordered()
	if err := mpi.ReduceLocal(in, inout, op); err != nil || inout[0] != word("ax") || inout[1] != word("by") {
		t.Error(inout, err)
	}
	wantError(t, mpi.ReduceLocal([]int{1}, []int{1}, op), mpi.ErrOp, "user operation of int")
	if op.Commutative() || !mpi.OpOf(string32.add).Commutative() || mpi.Sum.Ordered().Commutative() {
		t.Error("Ordered is commutative, or others are not")
	}
}

// string32 is text whose joining is associative but not commutative.
type string32 [32]byte

func word(s string) (w string32) { copy(w[:], s); return }

func (w string32) add(o string32) string32 {
	n := 0
	for n < len(w) && w[n] != 0 {
		n++
	}
	copy(w[n:], o[:])
	return w
}

func TestReduceLocalArguments(t *testing.T) {
	b := make([]int, 8)
	wantError(t, mpi.ReduceLocal(b[:2], b[4:7], mpi.Sum), mpi.ErrCount, "2 elements in, 3 expected")
	wantError(t, mpi.ReduceLocal(b[:4], b[3:7], mpi.Sum), mpi.ErrArg, "overlap")
	wantError(t, mpi.ReduceLocal(b, b, mpi.Sum), mpi.ErrArg, "overlap")
	wantError(t, mpi.ReduceLocal([]string{""}, []string{""}, mpi.Sum), mpi.ErrType, "string")
	wantError(t, mpi.ReduceLocal(b[:1], b[1:2], mpi.Op{}), mpi.ErrOp)
	for _, empty := range [][]int{nil, {}} {
		if err := mpi.ReduceLocal(empty, nil, mpi.Sum); err != nil {
			t.Error(err)
		}
	}
	in, inout := make([]float64, 1000), make([]float64, 1000)
	if n := testing.AllocsPerRun(100, func() {
		if err := mpi.ReduceLocal(in, inout, mpi.Sum); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The operations through a collective: values of all ranks, in rank order.
func TestAllreduceOps(t *testing.T) {
	joined := mpi.OpOf(string32.add).Ordered()
	for _, n := range []int{1, 2, 3, 5} {
		overAll(t, n, func(t *mpitest.T, w *mpi.Comm) {
			r := rand.New(rand.NewPCG(1, 2)) // the same on all ranks
			values := make([]float64, n)
			want := mpi.ValueIndex[float64]{Value: math.Inf(1)}
			for i := range values {
				values[i] = float64(r.IntN(3))
				if values[i] < want.Value {
					want = mpi.ValueIndex[float64]{Value: values[i], Index: int64(i)}
				}
			}
			mine := mpi.ValueIndex[float64]{Value: values[w.Rank()], Index: int64(w.Rank())}
			got, err := mpi.AllreduceOne(w, mine, mpi.MinLoc)
			must(t, err)
			if got != want {
				t.Fatalf("%v of %v, want %v", got, values, want)
			}
			all, err := mpi.AllreduceOne(w, word(string(rune('a'+w.Rank()))), joined)
			must(t, err)
			if all != word("abcde"[:n]) {
				t.Fatalf("joined to %s", all)
			}
			// More than is copied at once where the result goes to the left
			// operand's place.
			many, sums := make([]string32, 3000), make([]string32, 3000)
			for i := range many {
				many[i] = word(fmt.Sprintf("%d%c", i%10, 'a'+w.Rank()))
			}
			must(t, mpi.Allreduce(w, many, sums, joined))
			for i, got := range sums {
				var want string32
				for r := range n {
					want = want.add(word(fmt.Sprintf("%d%c", i%10, 'a'+r)))
				}
				if got != want {
					t.Fatalf("element %d joined to %s, want %s", i, got, want)
				}
			}
			// A NaN with other bits on each rank, and lengths on both sides of
			// a vector.
			for _, length := range []int{1, 7, 100} {
				bits := make([]float64, length)
				for i := range bits {
					bits[i] = math.Float64frombits(0x7ff8000000000000 + uint64(w.Rank()+i))
				}
				must(t, mpi.Allreduce(w, bits, bits, mpi.Sum))
				for i := range bits {
					if b := math.Float64bits(bits[i]); n > 1 && b != math.MaxUint64 {
						t.Fatalf("element %d of %d is %x", i, length, b)
					}
				}
			}
			_, err = mpi.AllreduceOne(w, 1, mpi.Replace)
			wantError(t, err, mpi.ErrOp, "Replace of int64")
		})
	}
}

func TestAllreduceOneAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	lower := mpi.NewOp(func(in, inout []particle) { copy(inout, in) }).Ordered()
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		here := mpi.ValueIndex[float32]{Value: 1, Index: int64(w.Rank())}
		in, out := make([]particle, 3), make([]particle, 3)
		round := func() {
			_, err := mpi.AllreduceOne(w, 1.5, mpi.Sum)
			must(t, err)
			_, err = mpi.AllreduceOne(w, true, mpi.LogAnd)
			must(t, err)
			_, err = mpi.AllreduceOne(w, 2i, mpi.Prod)
			must(t, err)
			_, err = mpi.AllreduceOne(w, here, mpi.MinLoc)
			must(t, err)
			must(t, mpi.Allreduce(w, in, out, lower))
		}
		const rounds = 100
		if w.Rank() > 0 {
			for range rounds + 1 { // AllocsPerRun does one to warm up
				round()
			}
			return
		}
		if a := testing.AllocsPerRun(rounds, round); a != 0 {
			t.Errorf("%v allocations in a round", a)
		}
	})
}

// An operation of the user is for its own element type, in both buffers, under
// whatever name.
func TestUserOpOfOtherElements(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		add := mpi.OpOf(func(a, b float64) float64 { return a + b })
		length, number := mpi.TypeOf[meters]().WithName("length"), mpi.TypeOf[float64]().WithName("number")
		m, f := mpi.BufAs(length, []meters{1}, 1), mpi.BufAs(number, []float64{1}, 1)
		sum := []float64{0}
		out := mpi.BufAs(number, sum, 1)
		wantError(t, w.Bufs().Allreduce(m, out, add), mpi.ErrOp, "user operation of mpi_test.meters")
		wantError(t, w.Bufs().Allreduce(f, mpi.BufAs(length, []meters{0}, 1), add), mpi.ErrOp, "user operation of mpi_test.meters")
		wantError(t, w.Bufs().Scan(m, mpi.BufOf(sum), add), mpi.ErrOp)
		must(t, w.Bufs().Allreduce(f, out, add))
		if sum[0] != 2 {
			t.Errorf("the sum is %v", sum[0])
		}
	})
}
