// SPDX-License-Identifier: Apache-2.0

package value_test

import (
	"context"
	"fmt"

	"gompi/mpi"
	"gompi/mpi/value"
)

// Rank 0 sends a map to everybody, itself too.
func Example() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if world.Rank() == 0 {
			for r := range world.Size() {
				must(value.Send(world, map[string][]int{"primes": {2, 3, 5}}, r, 0))
			}
		}
		m, st, err := value.Recv[map[string][]int](world, mpi.AnySource, 0)
		fmt.Println(m["primes"], "from rank", st.Source)
		return err
	})
	// Output: [2 3 5] from rank 0
}

// All ranks get rank 0's configuration.
func ExampleBcast() {
	type config struct {
		Title string
		Steps []float64
	}
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		var c config
		if world.Rank() == 0 {
			c = config{"heat", []float64{0.1, 0.2}}
		}
		c, err := value.Bcast(world, c, 0)
		fmt.Println(c.Title, c.Steps)
		return err
	})
	// Output: heat [0.1 0.2]
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
