// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// cg is SAM's emulation of a conjugate gradient iteration: computing (its stage 0, points
// thrown at a circle), two Allreduces of 8 bytes, an Allgather of the vector, which has as
// many bytes in proportion to the data as in the study: 33,176,880 of 64 GB.
type cg struct {
	turns int64 // of computing in one iteration, all ranks together
	x     uint64
	hits  int64
	bytes int
	share []byte
	all   []byte
	of    *mpi.Comm
	count []int
	at    []int
	dot   [2]float64
}

// vectorShare is the data by the vector, in bytes.
const vectorShare = 1930

func newCG(bytes int64) *cg {
	n := int(bytes/vectorShare) &^ 7
	return &cg{x: 88172645463325252, bytes: n, all: make([]byte, n)}
}

// iterate is one iteration. Collective over c.
func (g *cg) iterate(c *mpi.Comm) error {
	if g.of != c {
		g.over(c)
	}
	g.compute(g.turns / int64(c.Size()))
	for range 2 {
		g.dot[0] = float64(g.hits)
		if err := mpi.Allreduce(c, g.dot[:1], g.dot[1:], mpi.Sum); err != nil {
			return err
		}
	}
	return mpi.Allgatherv(c, g.share, g.all, g.count, g.at)
}

// over divides the vector among the ranks of c.
func (g *cg) over(c *mpi.Comm) {
	size := c.Size()
	g.of, g.count, g.at = c, make([]int, size), make([]int, size)
	words, at := g.bytes/8, 0
	for r := range size {
		n := words / size
		if r < words%size {
			n++
		}
		g.count[r], g.at[r] = 8*n, at
		at += 8 * n
	}
	g.share = make([]byte, g.count[c.Rank()])
}

// compute throws points at a circle.
func (g *cg) compute(turns int64) {
	x, hits := g.x, g.hits
	for range turns {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		a, b := x>>32, x&0xffffffff
		if (a*a>>1)+(b*b>>1) <= 1<<63 {
			hits++
		}
	}
	g.x, g.hits = x, hits
}

const (
	calibrations = 4 // each corrects the one before
	calibrated   = 9 // iterations of each
)

// calibrate finds how much computing makes an iteration last so long. Collective over c.
func (g *cg) calibrate(c *mpi.Comm, want time.Duration) (err error) {
	g.turns = int64(c.Size()) << 16
	for range calibrations {
		took := make([]float64, calibrated)
		for i := range took {
			start := time.Now()
			if err := g.iterate(c); err != nil {
				return err
			}
			took[i] = float64(time.Since(start))
		}
		turns := max(1, int64(float64(g.turns)*float64(want)/max(1, report.Median(took))))
		if g.turns, err = mpi.BcastOne(c, turns, 0); err != nil {
			return err
		}
	}
	return nil
}
