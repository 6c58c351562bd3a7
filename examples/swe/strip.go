// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
)

// The measures of the chart, in pixels.
const (
	stripWide  = 760
	marginLeft = 64
	marginEnd  = 24
	ranksTop   = 48
	ranksHigh  = 110
	timesTop   = 206
	timesHigh  = 190
	stripHigh  = 452
)

// strip draws the ranks of each phase, and below it what the phase took, with the changes
// of size before it or in it, as SVG.
func strip(phases []phase) []byte {
	var b bytes.Buffer
	mostRanks, longest := 1, 0.0
	for _, is := range phases {
		mostRanks, longest = max(mostRanks, is.Ranks), max(longest, is.Seconds+is.Change)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#333">`+"\n", stripWide, stripHigh)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="#fff"/>`)
	text := func(x, y float64, anchor, style, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, style, s)
	}
	bar := func(x, y, wide, high float64, fill, title string) {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>`+"\n", x, y, wide, high, fill, title)
	}
	const head = ` font-size="14" font-weight="bold"`
	text(marginLeft, ranksTop-16, "start", head, "ranks")
	text(marginLeft, timesTop-16, "start", head, "seconds per phase")
	slot := float64(stripWide-marginLeft-marginEnd) / float64(len(phases))
	// Lines and numbers at round values.
	scale := func(top, high int, step, most float64, format string) (y func(v float64) float64) {
		over := math.Ceil(most/step-1e-9) * step
		y = func(v float64) float64 { return float64(top+high) - v/over*float64(high) }
		for k := 0; float64(k)*step <= over+step/2; k++ {
			v := float64(k) * step
			fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", marginLeft, stripWide-marginEnd, y(v), y(v))
			text(marginLeft-8, y(v)+4, "end", "", fmt.Sprintf(format, v))
		}
		return y
	}
	ranks := scale(ranksTop, ranksHigh, max(1, round(float64(mostRanks)/4)), float64(mostRanks), "%.0f")
	step := round(max(longest, 1e-6) / 4)
	times := scale(timesTop, timesHigh, step, max(longest, 1e-6), fmt.Sprintf("%%.%df", max(0, int(math.Ceil(-math.Log10(step)-1e-9)))))
	every := (len(phases) + 19) / 20
	for k, is := range phases {
		x, wide := marginLeft+float64(k)*slot+0.12*slot, 0.76*slot
		bar(x, ranks(float64(is.Ranks)), wide, ranks(0)-ranks(float64(is.Ranks)), "#2e86c1", fmt.Sprintf("phase %d: %d ranks", k+1, is.Ranks))
		bar(x, times(is.Seconds), wide, times(0)-times(is.Seconds), "#66a9a0", fmt.Sprintf("phase %d: %.4f s", k+1, is.Seconds))
		if is.Change > 0 {
			bar(x, times(is.Seconds+is.Change), wide, times(is.Seconds)-times(is.Seconds+is.Change), "#d35400", fmt.Sprintf("phase %d: %.4f s in changes of size", k+1, is.Change))
		}
		if k%every == 0 {
			text(x+wide/2, timesTop+timesHigh+18, "middle", "", fmt.Sprint(k+1))
		}
	}
	text(marginLeft+float64(len(phases))*slot/2, timesTop+timesHigh+40, "middle", "", "phase")
	bar(stripWide-marginEnd-246, timesTop-26, 11, 11, "#66a9a0", "steps")
	text(stripWide-marginEnd-230, timesTop-16, "start", "", "steps")
	bar(stripWide-marginEnd-166, timesTop-26, 11, 11, "#d35400", "change")
	text(stripWide-marginEnd-150, timesTop-16, "start", "", "change of size before it")
	fmt.Fprintln(&b, "</svg>")
	return b.Bytes()
}

// round is the next of 1, 2 and 5 times a power of ten.
func round(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 5} {
		if k*power >= v*(1-1e-9) {
			return k * power
		}
	}
	return 10 * power
}
