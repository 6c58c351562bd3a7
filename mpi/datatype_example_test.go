// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"fmt"

	"gompi/mpi"
)

// A column of a matrix that is stored by rows travels without a copy of it.
func ExampleTypeVector() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		const rows, cols = 3, 4
		matrix := make([]float64, rows*cols)
		for i := range matrix {
			matrix[i] = float64(i)
		}
		column, err := mpi.TypeVector(rows, 1, cols, mpi.TypeOf[float64]())
		if err != nil {
			return err
		}
		in := make([]float64, rows)
		r := mpi.Irecv(world, in, world.Rank(), 0)
		if err := world.Bufs().Send(mpi.BufAt(column, matrix, 1, 1), world.Rank(), 0); err != nil {
			return err
		}
		_, err = r.Wait()
		fmt.Println(in)
		return err
	})
	// Output: [1 5 9]
}

// Two fields of each element of a slice travel; the others are left alone.
func ExampleTypeFields() {
	type atom struct {
		Name  string
		Pos   [3]float64
		Extra struct{ Charge, Mass float64 }
	}
	moving, err := mpi.TypeFields[atom]("Pos", "Extra.Charge")
	if err != nil {
		fmt.Println(err)
		return
	}
	out := []atom{{Name: "H", Pos: [3]float64{1, 2, 3}}, {Name: "O", Pos: [3]float64{4, 5, 6}}}
	out[1].Extra.Charge = -2
	packed, err := mpi.Pack(nil, mpi.BufAs(moving, out, len(out)))
	if err != nil {
		fmt.Println(err)
		return
	}
	in := []atom{{Name: "a"}, {Name: "b"}}
	rest, err := mpi.Unpack(packed, mpi.BufAs(moving, in, len(in)))
	fmt.Println(len(packed), len(rest), err)
	fmt.Println(in)
	// Output:
	// 64 0 <nil>
	// [{a [1 2 3] {0 0}} {b [4 5 6] {-2 0}}]
}

// The inner part of an array, and the room around it.
func ExampleTypeSubarray() {
	inner, err := mpi.TypeSubarray([]int{4, 5}, []int{2, 3}, []int{1, 1}, mpi.OrderC, mpi.TypeOf[int32]())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, extent := inner.Extent()
	at, span := inner.TrueExtent()
	fmt.Println(inner.Size(), extent, at, span)
	_, err = mpi.Pack(nil, mpi.BufAs(inner, make([]int32, 10), 1))
	fmt.Println(err)
	// Output:
	// 24 80 24 32
	// gompi: Pack: invalid count: 1 elements: they reach from byte 24 to byte 56, counted from element 0 of a slice of 10 elements of 4 bytes
}

// The external representation is the same on all machines.
func ExamplePackExternal() {
	b, err := mpi.PackExternal(nil, mpi.BufOf([]int32{1, -2}))
	fmt.Printf("% x %v\n", b, err)
	// Output: 00 00 00 01 ff ff ff fe <nil>
}
