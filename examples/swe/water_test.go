// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// basin is water on one rank, with cells by their middles.
func basin(t *mpitest.T, world *mpi.Comm, g *grid, of func(x, y float64) cell) *water {
	w := &water{grid: g}
	for p := range g.at {
		n := g.edge(p)
		for k := range n * n {
			x, y := float64(g.at[p][0]*n+k%n)+0.5, float64(g.at[p][1]*n+k/n)+0.5
			w.cells = append(w.cells, of(x*g.size(p), y*g.size(p)))
		}
	}
	if err := w.settle(world); err != nil {
		t.Fatal(err)
	}
	return w
}

func alone(t *testing.T, f func(t *mpitest.T, world *mpi.Comm)) { mpitest.Run(t, 1, f) }

// A dam that breaks along a line comes near to what is known of it, nearer by smaller
// cells, in either direction, and on patches of several levels.
func TestDamBreak(t *testing.T) {
	const until = 0.05
	err := func(t *mpitest.T, world *mpi.Comm, base int, turn, refined bool) float64 {
		g := newGrid(8, 2, base)
		if turn {
			g = newGrid(8, 8, base) // y is then as long as x
		}
		if refined {
			for p := range g.levels {
				g.levels[p] = uint8(p % 3)
			}
		}
		along := func(x, y float64) float64 {
			if turn {
				return y
			}
			return x
		}
		w := basin(t, world, g, func(x, y float64) cell {
			if along(x, y) < 0.5 {
				return cell{H: 2}
			}
			return cell{H: 1}
		})
		time := 0.0
		for time < until {
			dt, err := w.advance()
			if err != nil {
				t.Fatal(err)
			}
			time += dt
		}
		sum, area := 0.0, 0.0
		for p := range g.at {
			n, d := g.edge(p), g.size(p)
			for k, c := range w.of(w.cells, p) {
				x, y := (float64(g.at[p][0]*n+k%n)+0.5)*d, (float64(g.at[p][1]*n+k/n)+0.5)*d
				sum += math.Abs(c.H-stoker(2, 1, along(x, y)-0.5, time)) * d * d
				area += d * d
			}
		}
		return sum / area
	}
	alone(t, func(t *mpitest.T, world *mpi.Comm) {
		for _, turn := range []bool{false, true} {
			coarse, fine := err(t, world, 8, turn, false), err(t, world, 32, turn, false)
			// First order, a shock included: about as small as the cells; a fourth of their size.
			if coarse > 0.03 || fine > coarse/2 {
				t.Errorf("turned %v: error %.4f, by cells of a fourth %.4f", turn, coarse, fine)
			}
			if mixed := err(t, world, 8, turn, true); mixed > coarse || mixed < fine/2 {
				t.Errorf("turned %v: error %.4f, on patches of several levels %.4f", turn, coarse, mixed)
			}
		}
	})
}

// Calm water stays calm, to the bit, whatever the levels are; and what moves keeps its
// water but for rounding, refined and coarsened again and again.
func TestWaterStays(t *testing.T) {
	alone(t, func(t *mpitest.T, world *mpi.Comm) {
		g := newGrid(5, 3, 4)
		for p := range g.levels {
			g.levels[p] = uint8(p * 7 % 4)
		}
		w := basin(t, world, g, func(x, y float64) cell { return cell{H: 0.7} })
		before := slices.Clone(w.cells)
		for range 20 {
			if _, err := w.advance(); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range w.cells {
			if c.H != before[i].H || math.Abs(c.HU)+math.Abs(c.HV) > 1e-12 {
				t.Fatalf("calm water has %v", c)
			}
		}
		w = basin(t, world, newGrid(6, 5, 4), func(x, y float64) cell { return dam(x, y, 5.0/6) })
		mass, changed := w.mass(w.cells), 0
		for step := range 150 {
			if step%5 == 0 {
				c, err := w.refine(2)
				if err != nil {
					t.Fatal(err)
				}
				if c {
					changed++
				}
			}
			if _, err := w.advance(); err != nil {
				t.Fatal(err)
			}
		}
		// Some ten thousand sums a step, whose rounding goes either way.
		if is := w.mass(w.cells); math.Abs(is/mass-1) > 1e-13 || changed < 5 || !w.valid() {
			t.Errorf("%g of water was %g; levels have changed %d times", is, mass, changed)
		}
	})
}

// Refined and coarsened again a patch is what it was; each level is the mean of the next.
func TestResample(t *testing.T) {
	cells := make([]cell, 16)
	for i := range cells {
		cells[i] = cell{float64(i), float64(-i), 1}
	}
	if back := resample(resample(cells, 4, 16), 16, 4); !slices.Equal(back, cells) {
		t.Errorf("%v", back)
	}
	if two := resample(cells, 4, 2); two[0] != (cell{(0 + 1 + 4 + 5) / 4.0, -(0 + 1 + 4 + 5) / 4.0, 1}) {
		t.Errorf("%v", two)
	}
}
