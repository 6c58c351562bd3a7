// SPDX-License-Identifier: Apache-2.0

package main

// The basin at the beginning: a column of water stands out of calm water, and falls.
const (
	calm   = 1.0
	column = 2.5
	// Where its middle is, in parts of the basin, and its radius, in parts of the width.
	middleX, middleY, radius = 0.3, 0.4, 0.12
)

// dam is a cell at the beginning, by its middle; high is how high the basin is.
func dam(x, y, high float64) cell {
	dx, dy := x-middleX, y-middleY*high
	if dx*dx+dy*dy < radius*radius {
		return cell{H: column}
	}
	return cell{H: calm}
}

// fill makes the cells of a patch as they are at the beginning.
func (g *grid) fill(p int, cells []cell) {
	n, d := g.edge(p), g.size(p)
	high := float64(g.high) / float64(g.wide)
	for j := range n {
		for i := range n {
			x, y := float64(g.at[p][0]*n+i)+0.5, float64(g.at[p][1]*n+j)+0.5
			cells[j*n+i] = dam(x*d, y*d, high)
		}
	}
}
