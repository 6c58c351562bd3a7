// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

var small = settings{wide: 5, high: 4, base: 4, phases: 21, steps: 3, regrid: 2, every: 1 << 30, most: 1}

// circuit goes from every number of ranks in 1..5 to every other.
var circuit = []int{1, 2, 1, 3, 1, 4, 1, 5, 2, 3, 2, 4, 2, 5, 3, 4, 3, 5, 4, 5, 1}

// end is the last state, as the first rank has it.
func end(t *testing.T, o settings, ranks int, plan []int, opts ...mpitest.Option) (sum uint64, cells int) {
	t.Helper()
	mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
		j := &job{settings: o, plan: plan, out: io.Discard}
		j.over = func(all []cell) {
			if sum != 0 {
				t.Error("the end comes twice")
			}
			sum, cells = checksum(all), len(all)
			for k, is := range j.done {
				if want := plan; want != nil && is.Ranks != want[k] {
					t.Errorf("phase %d by %d ranks, not %d", k+1, is.Ranks, want[k])
				}
			}
		}
		if err := j.run(t.Context(), world); err != nil && !errors.Is(err, mpi.ErrLeaving) {
			t.Fatal(err)
		}
	}, opts...)
	return sum, cells
}

// Whoever computes what, and whatever changes of size there are: the end is the same to
// the bit.
func TestSame(t *testing.T) {
	for _, finest := range []int{0, 2} {
		o := small
		o.finest = finest
		want, cells := end(t, o, 1, nil)
		if least := o.wide * o.high * o.base * o.base; cells < least || (cells > least) != (finest > 0) {
			t.Errorf("%d cells", cells)
		}
		for _, transport := range []string{"inproc", "shm", "tcp"} {
			for ranks := 2; ranks <= 5; ranks++ {
				if got, _ := end(t, o, ranks, nil, mpitest.Transport(transport)); got != want {
					t.Errorf("%d levels more, %d ranks over %s: checksum %x, of one rank %x", finest, ranks, transport, got, want)
				}
			}
			if got, _ := end(t, o, 1, circuit, mpitest.Transport(transport)); got != want {
				t.Errorf("%d levels more, with changes of size over %s: checksum %x, of one rank %x", finest, transport, got, want)
			}
		}
	}
}

// More ranks than patches: some have none.
func TestFewPatches(t *testing.T) {
	o := small
	o.wide, o.high, o.phases = 2, 1, 3
	want, _ := end(t, o, 1, nil)
	if got, _ := end(t, o, 5, []int{5, 2, 4}); got != want {
		t.Errorf("checksum %x, of one rank %x", got, want)
	}
}

// Pictures and the chart are files that others read.
func TestPictures(t *testing.T) {
	o := small
	o.finest, o.phases, o.every = 2, 4, 5
	o.frames, o.chart, o.grow, o.most = filepath.Join(t.TempDir(), "new"), filepath.Join(t.TempDir(), "strip.svg"), true, 3
	end(t, o, 1, nil)
	names, err := filepath.Glob(o.frames + "/*.png")
	if err != nil || len(names) != 1+o.phases*o.steps/o.every {
		t.Fatalf("%d pictures, %v", len(names), err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		colors, size := map[string]bool{}, img.Bounds().Size()
		for y := range size.Y {
			for x := range size.X {
				colors[fmt.Sprint(img.At(x, y))] = true
			}
		}
		if size.X*o.high != size.Y*o.wide || len(colors) < 5 {
			t.Errorf("%s: %v pixels in %d colours", name, size, len(colors))
		}
	}
	svg, err := os.ReadFile(o.chart)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"phase 1: 1 ranks", "phase 2: 2 ranks", "phase 4: 3 ranks", "in changes of size"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
}

// What pays and what does not.
func TestGains(t *testing.T) {
	var b strings.Builder
	j := &job{done: []phase{{1, 10, 4, 0}, {2, 10, 2, 1}, {3, 10, 2.5, 0.25}, {3, 10, 2.5, 0}}}
	j.gains(&b)
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{"amortised after", "-", "0.50 phases", "never", "-"} {
		if !strings.HasSuffix(lines[i], "  "+want) {
			t.Errorf("line %q, want %q", lines[i], want)
		}
	}
	if f := strings.Fields(lines[2]); f[4] != "2.0000" {
		t.Errorf("gain %s, want 2", f[4])
	}
}
