// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"
)

// Figure is one plot: lines, or bars, with a legend beside them. As JSON it is what
// gompiplot draws; a program that ranks run links nothing that draws.
type Figure struct {
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	// Names make it a figure of bars: bar i of each series stands at Names[i], one beside
	// the other or (Stacked) each on the one before it. X of series then does not count,
	// and the Y axis is linear. Names that are long stand beside bars that lie.
	Names   []string `json:"names,omitempty"`
	Stacked bool     `json:"stacked,omitempty"`
	Series  []Series `json:"series"`
}

// Axis is one of the two axes of a figure. It is logarithmic, so that what is not
// positive has no place on it, unless it is linear.
type Axis struct {
	Label  string `json:"label"`
	Linear bool   `json:"linear,omitempty"`
	// Binary: its numbers are powers of two (bytes, ranks), not of ten.
	Binary bool `json:"binary,omitempty"`
	// Bytes: its numbers are written as Bytes does.
	Bytes bool `json:"bytes,omitempty"`
}

// Series is one line of a figure, or the bars of one colour. X and Y have the same length;
// a point that has no place on its axes interrupts the line. Bars have as many Y as there
// are names; one that is no number above 0 is not there.
type Series struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// Text is the number beside a tick.
func (a Axis) Text(v float64) string {
	switch {
	case a.Bytes:
		return Bytes(v)
	case a.Binary:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return shortest(v)
}

// shortest is the default form of a tick's value.
func shortest(v float64) string {
	// Products such as 3*0.1 carry digits that nobody drew.
	if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64); err == nil {
		v = r
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e6) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Bytes writes a number of bytes with the binary suffix that divides it: 512,
// 4K, 64M.
func Bytes(v float64) string {
	for _, s := range []string{"", "K", "M", "G", "T"} {
		if v < 1024 || v != math.Trunc(v) || math.Mod(v, 1024) != 0 {
			return shortest(v) + s
		}
		v /= 1024
	}
	return shortest(v) + "P"
}
