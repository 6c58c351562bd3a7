// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"gompi/internal/control/protocol"
)

// dot writes the graph of sets and of their operations in Graphviz's language.
func dot(out io.Writer, list []protocol.SetReport) error {
	var b strings.Builder
	b.WriteString("digraph sets {\n\trankdir=LR;\n\tnode [shape=box];\n")
	for i := range list {
		s := &list[i]
		fmt.Fprintf(&b, "\ts%d [label=%q%s];\n", s.Set.Number, strings.Join(label(s), "\n"), style(s))
	}
	for _, e := range edges(list) {
		fmt.Fprintf(&b, "\ts%d -> s%d [label=%q%s];\n", list[e.from].Set.Number, list[e.to].Set.Number, maker(&list[e.to]), style(&list[e.to]))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func style(s *protocol.SetReport) string {
	switch {
	case s.Pending:
		return ", style=dashed"
	case s.Main:
		return ", penwidth=2"
	}
	return ""
}

// label returns the text in the box of a set.
func label(s *protocol.SetReport) []string {
	text := living(s) + " processes"
	if s.Size == 1 && s.Living == 1 {
		text = "1 process"
	}
	if s.Watched > 0 {
		text += ", watched"
	}
	return append(names(s), text)
}

// edge leads from a set to one that was made of it, by index in the list.
type edge struct{ from, to int }

func edges(list []protocol.SetReport) []edge {
	place := map[uint32]int{}
	for i := range list {
		place[list[i].Set.Number] = i
	}
	var all []edge
	for i := range list {
		for _, n := range list[i].Of {
			if from, ok := place[n]; ok {
				all = append(all, edge{from, i})
			}
		}
	}
	return all
}

// Measures of the drawing, in pixels. Letters are as wide as in most fonts of their size.
const (
	fontSize = 13
	letter   = 7.2
	lineStep = 17
	margin   = 12
	rowGap   = 20
	gap      = 120 // between columns, for the name of an operation
)

type box struct{ x, y, w, h float64 }

// svg draws the graph: a set stands to the right of the sets that it was made of.
func svg(out io.Writer, title string, list []protocol.SetReport) error {
	arrows := edges(list)
	boxes, width, height := layout(list, arrows)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="%d">`+"\n", width, height, fontSize)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	b.WriteString(`<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="9" refY="4" orient="auto"><path d="M0,0 L9,4 L0,8 z"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", width, height)
	for _, e := range arrows {
		from, to := boxes[e.from], boxes[e.to]
		x1, y1, x2, y2 := from.x+from.w, from.y+from.h/2, to.x, to.y+to.h/2
		fmt.Fprintf(&b, `<path d="M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f" fill="none" stroke="black"%s marker-end="url(#tip)"/>`+"\n",
			x1, y1, x1+gap/2, y1, x2-gap/2, y2, x2, y2, dashes(&list[e.to]))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#555">%s</text>`+"\n",
			x2-gap/2, (y1+3*y2)/4-5, html.EscapeString(maker(&list[e.to])))
	}
	for i := range list {
		s, r := &list[i], boxes[i]
		thick := 1
		if s.Main {
			thick = 2
		}
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4" fill="#f4f4f4" stroke="black" stroke-width="%d"%s/>`+"\n",
			r.x, r.y, r.w, r.h, thick, dashes(s))
		for k, line := range label(s) {
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", r.x+r.w/2, r.y+float64(k+1)*lineStep, html.EscapeString(line))
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func dashes(s *protocol.SetReport) string {
	if s.Pending {
		return ` stroke-dasharray="5,4"`
	}
	return ""
}

// layout puts each set into the column after those of the sets that it was made of.
func layout(list []protocol.SetReport, arrows []edge) (boxes []box, width, height float64) {
	boxes = make([]box, len(list))
	column := make([]int, len(list))
	// A set has a larger number than the sets that it was made of.
	slices.SortFunc(arrows, func(a, b edge) int { return cmp.Compare(list[a.to].Set.Number, list[b.to].Set.Number) })
	last := 0
	for _, e := range arrows {
		column[e.to] = max(column[e.to], column[e.from]+1)
		last = max(last, column[e.to])
	}
	x := float64(margin)
	for c := range last + 1 {
		y, widest := float64(margin), 0.0
		for i := range list {
			if column[i] != c {
				continue
			}
			text := label(&list[i])
			r := &boxes[i]
			r.x, r.y, r.h = x, y, float64(len(text))*lineStep+8
			for _, line := range text {
				r.w = max(r.w, float64(len(line))*letter+16)
			}
			widest = max(widest, r.w)
			y += r.h + rowGap
		}
		height = max(height, y-rowGap+margin)
		x += widest + gap
	}
	return boxes, x - gap + margin, height
}
