// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
)

// gains prints what each phase has gained over the first, and after how many phases like
// it the change before it has paid for itself against the phase before.
func (j *job) gains(w io.Writer) {
	fmt.Fprintf(w, "%5s %5s %9s %9s %9s %9s  %s\n", "phase", "ranks", "cells", "seconds", "gain", "change", "amortised after")
	for k, is := range j.done {
		after := "-"
		if k > 0 && is.Change > 0 {
			after = amortised(is.Change, j.done[k-1].Seconds-is.Seconds)
		}
		fmt.Fprintf(w, "%5d %5d %9d %9.4f %9.4f %9.4f  %s\n", k+1, is.Ranks, is.Cells, is.Seconds, j.done[0].Seconds-is.Seconds, is.Change, after)
	}
}

// amortised is after how many phases a change has paid for itself.
func amortised(change, gain float64) string {
	if gain <= 0 {
		return "never"
	}
	return fmt.Sprintf("%.2f phases", change/gain)
}
