// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
)

// picture has the first rank write the water as it is now. Collective.
func (j *job) picture() error {
	if j.frames == "" {
		return nil
	}
	all, err := j.gather()
	if err != nil || j.comm.Rank() > 0 {
		return err
	}
	patches, _, err := j.shares(j.comm.Size())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(j.frames, 0o777); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(j.frames, fmt.Sprintf("frame-%06d.png", j.Step)))
	if err != nil {
		return err
	}
	err = png.Encode(file, j.draw(all, owners(patches), j.finest))
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// Pictures are about this wide.
const pictureWide = 960

// draw paints the depth, lit from the upper left. Thin lines are edges of refined patches,
// white ones are between ranks.
func (g *grid) draw(all []cell, owner []int, finest int) image.Image {
	first := make([]int, len(g.at))
	for p, at := 0, 0; p < len(first); p++ {
		first[p], at = at, at+g.edge(p)*g.edge(p)
	}
	// Pixels of a patch along an edge: a multiple of its finest cells, or as it comes.
	per := max(pictureWide/g.wide, 2)
	if fine := g.base << finest; per > fine {
		per = (per + fine/2) / fine * fine
	}
	wide, high := g.wide*per, g.high*per
	img := image.NewRGBA(image.Rect(0, 0, wide, high))
	// depth is that of a pixel, from below; the nearest one there is.
	depth := func(x, y int) float64 {
		x, y = min(max(x, 0), wide-1), min(max(y, 0), high-1)
		p, _ := g.patch(x/per, y/per)
		n := g.edge(p)
		return all[first[p]+(y%per*n/per)*n+x%per*n/per].H
	}
	at := func(x, y int) int {
		p, ok := g.patch(x, y)
		if !ok {
			return -1
		}
		return p
	}
	for y := range high {
		for x := range wide {
			// The slope over the width of the coarsest cell, so that all are lit alike.
			d := max(per/g.base/2, 1)
			slope := (depth(x+d, y) - depth(x-d, y)) - (depth(x, y+d) - depth(x, y-d))
			c := shade(depth(x, y), slope/float64(d)*float64(per)/float64(g.base))
			p := at(x/per, y/per)
			for _, next := range [2]int{at((x+1)/per, y/per), at(x/per, (y+1)/per)} {
				switch {
				case next < 0 || next == p:
				case owner[next] != owner[p]:
					c = color.RGBA{255, 255, 255, 255}
				case g.levels[next] > 0 || g.levels[p] > 0:
					c = mixed(c, color.RGBA{0, 0, 0, 255}, 0.25)
				}
			}
			img.SetRGBA(x, high-1-y, c)
		}
	}
	return img
}

// The colours of water, by its depth.
var depths = []struct {
	depth float64
	color color.RGBA
}{
	{0.55, color.RGBA{16, 24, 84, 255}},
	{0.85, color.RGBA{24, 78, 149, 255}},
	{1.00, color.RGBA{46, 134, 193, 255}},
	{1.20, color.RGBA{102, 194, 205, 255}},
	{1.60, color.RGBA{214, 240, 228, 255}},
	{2.50, color.RGBA{255, 250, 235, 255}},
}

// shade is the colour of a depth, lighter where the water rises towards the light.
func shade(depth, slope float64) color.RGBA {
	c := depths[len(depths)-1].color
	for i, d := range depths {
		if depth <= d.depth {
			if c = d.color; i > 0 {
				c = mixed(depths[i-1].color, c, (depth-depths[i-1].depth)/(d.depth-depths[i-1].depth))
			}
			break
		}
	}
	light := math.Tanh(4 * slope)
	if light > 0 {
		return mixed(c, color.RGBA{255, 255, 255, 255}, 0.35*light)
	}
	return mixed(c, color.RGBA{0, 0, 0, 255}, -0.35*light)
}

// mixed is some of a and a part of b.
func mixed(a, b color.RGBA, part float64) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + part*(float64(b)-float64(a)))) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}
