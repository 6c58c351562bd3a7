// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
)

// Lengths of the drawing, in pixels.
const (
	charWidth  = 7.2 // of the 12 px monospaced font
	lineHeight = 16
	padding    = 10
	gapX       = 34
	gapY       = 64
	margin     = 24
	perColumn  = 7 // packages in a column of a box
)

// box is a room with its place in the drawing.
type box struct {
	*room
	x, y, w, h float64
	columns    [][]string
}

// draw returns the drawing of rooms that have their floors.
func draw(rooms map[string]*room) []byte {
	boxes := map[string]*box{}
	floors := [][]*box{}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		b := newBox(rooms[name])
		boxes[name] = b
		for len(floors) <= b.floor {
			floors = append(floors, nil)
		}
		floors[b.floor] = append(floors[b.floor], b)
	}
	width := arrange(floors, boxes)
	height := place(floors, width)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="monospace" font-size="12">`+"\n", width, height, width, height)
	out.WriteString(`<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#345"/></marker></defs>` + "\n")
	out.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	arrows(&out, rooms, boxes)
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		boxes[name].draw(&out)
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func newBox(r *room) *box {
	b := &box{room: r}
	slices.Sort(r.packages)
	list := slices.DeleteFunc(slices.Clone(r.packages), func(p string) bool { return p == "." })
	for chunk := range slices.Chunk(list, perColumn) {
		b.columns = append(b.columns, chunk)
	}
	w, rows := float64(len(r.name))*charWidth*1.1, 0
	inner := 0.0
	for _, c := range b.columns {
		inner += columnWidth(c)
		rows = max(rows, len(c))
	}
	b.w = max(w, inner) + 2*padding
	b.h = float64(1+rows)*lineHeight + 2*padding
	return b
}

func columnWidth(c []string) float64 {
	longest := slices.MaxFunc(c, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return float64(len(longest)+2) * charWidth
}

// arrange orders the boxes of each floor by the middle of the boxes that they use,
// and returns the width of the widest floor.
func arrange(floors [][]*box, boxes map[string]*box) float64 {
	width := 0.0
	for _, floor := range floors {
		slices.SortStableFunc(floor, func(a, b *box) int { return cmp.Compare(middle(a, boxes), middle(b, boxes)) })
		x := 0.0
		for _, b := range floor {
			b.x = x
			x += b.w + gapX
		}
		width = max(width, x-gapX)
	}
	return width + 2*margin
}

// middle is the mean place of the boxes that b uses.
func middle(b *box, boxes map[string]*box) float64 {
	sum, n := 0.0, 0.0
	for _, to := range slices.Sorted(maps.Keys(b.uses)) {
		if u := boxes[to]; u != nil {
			sum, n = sum+u.x+u.w/2, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// place centres the floors, the highest at the top, and returns the height of all.
func place(floors [][]*box, width float64) float64 {
	y := float64(margin)
	for _, floor := range slices.Backward(floors) {
		total, tallest := -float64(gapX), 0.0
		for _, b := range floor {
			total += b.w + gapX
			tallest = max(tallest, b.h)
		}
		for _, b := range floor {
			b.x += (width - total) / 2
			b.y = y + (tallest-b.h)/2
		}
		y += tallest + gapY
	}
	return y - gapY + margin
}

// arrows draws the imports between folders: light ones first, so that dark ones lie on top.
func arrows(out *bytes.Buffer, rooms map[string]*room, boxes map[string]*box) {
	for _, dark := range []bool{false, true} {
		for _, from := range slices.Sorted(maps.Keys(rooms)) {
			for _, to := range slices.Sorted(maps.Keys(rooms[from].uses)) {
				a, b := boxes[from], boxes[to]
				if b == nil || direct(rooms, from, to) != dark {
					continue
				}
				x1, y1, x2, y2 := a.x+a.w/2, a.y+a.h, b.x+b.w/2, b.y
				// The ends lean to each other, so that arrows of one box do not hide one another.
				lean := math.Max(-1, math.Min(1, (x2-x1)/400))
				x1, x2 = x1+lean*a.w/3, x2-lean*b.w/3
				style := `stroke="#ccd5de"`
				if dark {
					style = `stroke="#345" stroke-width="1.6" marker-end="url(#a)"`
				}
				fmt.Fprintf(out, `<path d="M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f" fill="none" %s><title>%s uses %s: %d imports</title></path>`+"\n",
					x1, y1, x1, y1+gapY*.8, x2, y2-gapY*.8, x2, y2, style, from, to, rooms[from].uses[to])
			}
		}
	}
}

func (b *box) draw(out *bytes.Buffer) {
	fill := "#fdf6e3"
	if len(b.name) > 9 && b.name[:9] == "internal/" {
		fill = "#eef4fb"
	}
	fmt.Fprintf(out, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="5" fill="%s" stroke="#345"/>`+"\n", b.x, b.y, b.w, b.h, fill)
	fmt.Fprintf(out, `<text x="%.0f" y="%.0f" font-weight="bold">%s</text>`+"\n", b.x+padding, b.y+padding+12, html.EscapeString(b.name))
	x := b.x + padding
	for _, c := range b.columns {
		for i, p := range c {
			fmt.Fprintf(out, `<text x="%.0f" y="%.0f" fill="#345">%s</text>`+"\n", x, b.y+padding+12+float64(i+1)*lineHeight, html.EscapeString(p))
		}
		x += columnWidth(c)
	}
}
