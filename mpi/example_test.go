// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
)

// The examples run here as one rank of one, which sends to itself. Under
// gompirun the same code runs on any number of ranks.

func ExampleMain() {
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		fmt.Println("rank", world.Rank(), "of", world.Size())
		return world.Barrier()
	})
	// Output: rank 0 of 1
}

// A ring: each rank sends to the next and receives from the one before.
func ExampleSendrecv() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		next := (world.Rank() + 1) % world.Size()
		prev := (world.Rank() + world.Size() - 1) % world.Size()
		in := make([]float64, 3)
		st, err := mpi.Sendrecv(world, []float64{1, 2, 3}, next, 0, in, prev, 0)
		fmt.Println(in, "from", st.Source)
		return err
	})
	// Output: [1 2 3] from 0
}

func ExampleSend() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if world.Rank() == 0 {
			for r := 1; r < world.Size(); r++ {
				if err := mpi.Send(world, []int{10 * r}, r, 7); err != nil {
					return err
				}
			}
			return nil
		}
		buf := make([]int, 1)
		st, err := mpi.Recv(world, buf, mpi.AnySource, 7)
		fmt.Println(buf[0], "from", st.Source)
		return err
	})
	// Output:
}

// Errors tell what was wrong with numbers, and can be told apart.
func ExampleRecv_error() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		r := mpi.Isend(world, []int32{1, 2, 3, 4}, 0, 5)
		buf := make([]int32, 2)
		_, err := mpi.Recv(world, buf, 0, 5)
		fmt.Println(errors.Is(err, mpi.ErrTruncate))
		fmt.Println(err)
		_, err = r.Wait()
		return err
	})
	// Output:
	// true
	// gompi: Recv on WORLD rank 0, peer 0, tag 5: message truncated: 16 bytes, 8 expected
}

func ExampleIrecv() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		in, out := make([]int, 1), []int{42}
		reqs := []mpi.Request{
			mpi.Irecv(world, in, world.Rank(), 1),
			mpi.Isend(world, out, world.Rank(), 1),
		}
		err := mpi.Waitall(reqs)
		fmt.Println(in[0])
		return err
	})
	// Output: 42
}

func ExampleWaitany() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		a, b := make([]int, 1), make([]int, 1)
		reqs := []mpi.Request{mpi.Irecv(world, a, 0, 1), mpi.Irecv(world, b, 0, 2)}
		for _, tag := range []int{2, 1} {
			if err := mpi.Send(world, []int{100 * tag}, 0, tag); err != nil {
				return err
			}
			i, st, err := mpi.Waitany(reqs)
			if err != nil {
				return err
			}
			fmt.Println("request", i, "got tag", st.Tag)
		}
		i, _, err := mpi.Waitany(reqs)
		fmt.Println("none left:", i == mpi.Undefined)
		return err
	})
	// Output:
	// request 1 got tag 2
	// request 0 got tag 1
	// none left: true
}

// A message of unknown length.
func ExampleRecvNew() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		r := mpi.Isend(world, []float32{1.5, 2.5}, 0, 0)
		v, st, err := mpi.RecvNew[float32](world, mpi.AnySource, mpi.AnyTag)
		fmt.Println(v, st.Count)
		return errors.Join(err, mpi.Waitall([]mpi.Request{r}))
	})
	// Output: [1.5 2.5] 2
}

func ExampleComm_Mprobe() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		r := mpi.Isend(world, []byte("hello"), 0, 3)
		m, st, err := world.Mprobe(mpi.AnySource, 3)
		if err != nil {
			return err
		}
		buf := make([]byte, st.Bytes)
		_, err = mpi.Mrecv(m, buf)
		fmt.Printf("%s\n", buf)
		return errors.Join(err, mpi.Waitall([]mpi.Request{r}))
	})
	// Output: hello
}

func ExampleComm_WithContext() {
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("no time"))
		_, err := mpi.Recv(world.WithContext(ctx), make([]int, 1), 0, 0)
		fmt.Println(errors.Is(err, mpi.ErrCancelled), errors.Unwrap(err))
		return nil
	})
	// Output: true no time
}

func ExampleAllreduce() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		in, out := []float64{1, 2}, make([]float64, 2)
		if err := mpi.Allreduce(world, in, out, mpi.Sum); err != nil {
			return err
		}
		largest, err := mpi.AllreduceOne(world, world.Rank(), mpi.Max)
		fmt.Println(out, largest)
		return err
	})
	// Output: [1 2] 0
}

func ExampleNewOp() {
	type interval struct{ Lo, Hi float64 }
	union := mpi.NewOp(func(in, inout []interval) {
		for i := range in {
			inout[i] = interval{min(in[i].Lo, inout[i].Lo), max(in[i].Hi, inout[i].Hi)}
		}
	})
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		all, err := mpi.AllreduceOne(world, interval{-1, 2}, union)
		fmt.Println(all.Lo, all.Hi)
		return err
	})
	// Output: -1 2
}

// The longest word, of several the first in the order of the ranks.
func ExampleOpOf() {
	longer := mpi.OpOf(func(a, b [8]byte) [8]byte {
		if len(bytes.TrimRight(a[:], "\x00")) >= len(bytes.TrimRight(b[:], "\x00")) {
			return a // of the lower rank
		}
		return b
	}).Ordered()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		word, err := mpi.AllreduceOne(world, [8]byte{'o', 'n', 'e'}, longer)
		fmt.Printf("%s\n", bytes.TrimRight(word[:], "\x00"))
		return err
	})
	// Output: one
}

// The largest pivot and the rank that has it.
func ExampleValueIndex() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		mine := mpi.ValueIndex[float64]{Value: 2.5, Index: int64(world.Rank())}
		pivot, err := mpi.AllreduceOne(world, mine, mpi.MaxLoc)
		fmt.Println(pivot.Value, "on rank", pivot.Index)
		return err
	})
	// Output: 2.5 on rank 0
}

func ExampleReduceLocal() {
	in, inout := []int{1, 5, 3}, []int{4, 2, 3}
	fmt.Println(mpi.ReduceLocal(in, inout, mpi.Max), inout)
	// Output: <nil> [4 5 3]
}

func ExampleBcast() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		buf := make([]int, 2)
		if world.Rank() == 0 {
			copy(buf, []int{3, 4})
		}
		err := mpi.Bcast(world, buf, 0)
		fmt.Println(buf)
		return err
	})
	// Output: [3 4]
}

func ExampleAllgather() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		all := make([]int, world.Size())
		err := mpi.Allgather(world, []int{world.Rank() + 10}, all)
		fmt.Println(all)
		return err
	})
	// Output: [10]
}

// The same exchange many times: arguments are checked once.
func ExamplePersistent() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		in, out := make([]int, 1), make([]int, 1)
		ops := []*mpi.Persistent{
			mpi.RecvInit(world, in, world.Rank(), 0),
			mpi.SendInit(world, out, world.Rank(), 0),
		}
		for step := range 3 {
			out[0] = step * step
			if err := mpi.Startall(ops); err != nil {
				return err
			}
			for _, p := range ops {
				if _, err := p.Wait(); err != nil {
					return err
				}
			}
			fmt.Println(in[0])
		}
		return errors.Join(ops[0].Free(), ops[1].Free())
	})
	// Output:
	// 0
	// 1
	// 4
}

// Parts of a message leave as they are filled, here by one goroutine.
func ExamplePsendInit() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		out, in := make([]int, 4), make([]int, 4)
		s, r := mpi.PsendInit(world, out, 4, 0, 0), mpi.PrecvInit(world, in, 2, 0, 0)
		if err := mpi.Startall([]*mpi.Persistent{s, r}); err != nil {
			return err
		}
		for i := range out {
			out[i] = i * 10
			if err := s.Pready(i); err != nil {
				return err
			}
		}
		_, err := r.Wait()
		fmt.Println(in)
		_, serr := s.Wait()
		return errors.Join(err, serr)
	})
	// Output: [0 10 20 30]
}

func ExampleBsend() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if err := world.SendBuffer().Attach(100 * (8 + mpi.BsendOverhead)); err != nil {
			return err
		}
		for i := range 100 {
			if err := mpi.Bsend(world, []int{i}, 0, 0); err != nil {
				return err
			}
		}
		sum, buf := 0, make([]int, 1)
		for range 100 {
			if _, err := mpi.Recv(world, buf, 0, 0); err != nil {
				return err
			}
			sum += buf[0]
		}
		size, err := world.SendBuffer().Detach()
		fmt.Println(sum, size)
		return err
	})
	// Output: 4950 7200
}

// Results are worked on in the order in which they come.
func ExampleCompleted() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		x, sum := []int{20, 22}, make([]int, 2)
		reqs := []mpi.Request{
			mpi.Iallreduce(world, x[:1], sum[:1], mpi.Sum),
			mpi.Iallreduce(world, x[1:], sum[1:], mpi.Sum),
		}
		total := 0
		for c := range mpi.Completed(reqs) {
			if c.Err != nil {
				return c.Err
			}
			total += sum[c.Index]
		}
		fmt.Println(total)
		return nil
	})
	// Output: 42
}

// A worker takes tasks until one is empty.
func ExampleMessages() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		for i := range 3 {
			if err := mpi.SendOne(world, i, 0, 1); err != nil {
				return err
			}
		}
		if err := mpi.Send[int](world, nil, 0, 1); err != nil {
			return err
		}
		for m, err := range mpi.Messages[int](world, mpi.AnySource, 1) {
			if err != nil {
				return err
			}
			if len(m.Data) == 0 {
				break
			}
			fmt.Println("task", m.Data[0], "of rank", m.Source)
		}
		return nil
	})
	// Output:
	// task 0 of rank 0
	// task 1 of rank 0
	// task 2 of rank 0
}

// An error of the program's own reaches the handler as those of the library do;
// what MPI calls an error class is an error that others wrap.
func ExampleComm_CallErrorHandler() {
	errLost := errors.New("work was lost")
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		world.SetErrorHandler(func(c *mpi.Comm, err error) {
			fmt.Println(errors.Is(err, errLost), err)
		})
		world.CallErrorHandler(fmt.Errorf("rank %d: %w", world.Rank(), errLost))
		return nil
	})
	// Output: true rank 0: work was lost
}
