// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"gompi/mpi"
)

// report is what the root prints.
type report struct {
	opt      options
	ranks    int
	rows     extent
	nonzeros extent
	sol      *solution
	residual float64       // recomputed from x
	offOne   float64       // max |x - 1|
	loading  time.Duration // to read and distribute
	solving  time.Duration
	sent     traffic // by all ranks
}

// extent is about one number of each rank.
type extent struct{ least, most, sum int64 }

// gather finds the extents of xs over all ranks. Collective.
func gather(comm *mpi.Comm, xs ...int64) ([]extent, error) {
	out := make([]extent, len(xs))
	least, most, sum := make([]int64, len(xs)), make([]int64, len(xs)), make([]int64, len(xs))
	if err := mpi.Allreduce(comm, xs, least, mpi.Min); err != nil {
		return nil, err
	}
	if err := mpi.Allreduce(comm, xs, most, mpi.Max); err != nil {
		return nil, err
	}
	if err := mpi.Allreduce(comm, xs, sum, mpi.Sum); err != nil {
		return nil, err
	}
	for i := range out {
		out[i] = extent{least[i], most[i], sum[i]}
	}
	return out, nil
}

func (r *report) print(w io.Writer) error {
	var err error
	line := func(label, format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-11s %s\n", label, fmt.Sprintf(format, args...))
		}
	}
	n, iterations := r.rows.sum, r.sol.iterations()
	line("matrix", "%s: %d x %d, %d nonzeros, |b| = %.16e", filepath.Base(r.opt.matrix), n, n, r.nonzeros.sum, r.sol.norm)
	line("ranks", "%d, each %d to %d rows, %d to %d nonzeros", r.ranks, r.rows.least, r.rows.most, r.nonzeros.least, r.nonzeros.most)
	line("iterations", "%d", iterations)
	line("residual", "%.3e, recomputed %.3e", r.sol.residuals[iterations], r.residual)
	if r.opt.rhs == "" {
		line("error", "%.3e = max|x-1|", r.offOne)
	}
	line("time", "%v per iteration, %v in all, %v to read and distribute",
		(r.solving / time.Duration(max(iterations, 1))).Round(100*time.Nanosecond),
		r.solving.Round(10*time.Microsecond), r.loading.Round(10*time.Microsecond))
	line("bytes", "%d communicated: %d to distribute, %d in ghosts, %d in sums",
		r.sent.setup+r.sent.halo+r.sent.sums, r.sent.setup, r.sent.halo, r.sent.sums)
	return err
}

// draw writes the history of the residuals as SVG.
func (r *report) draw(file string) error {
	var points plotter.XYs
	for i, y := range r.sol.residuals {
		if y > 0 { // what a logarithmic axis can show
			points = append(points, plotter.XY{X: float64(i), Y: y})
		}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	line.Color, line.Width = color.RGBA{0x00, 0x72, 0xb2, 0xff}, vg.Points(1.4)
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, %d ranks", filepath.Base(r.opt.matrix), r.ranks)
	p.Title.Padding = vg.Points(6)
	p.X.Label.Text, p.Y.Label.Text = "iteration", "residual |b - A x| / |b|"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 1}
	p.Add(plotter.NewGrid(), line)
	p.Y.Min, p.Y.Max = p.Y.Min/2, p.Y.Max*2 // room, also around a single point
	svg, err := p.WriterTo(18*vg.Centimeter, 11*vg.Centimeter, "svg")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = svg.WriteTo(f)
	return errors.Join(err, f.Close())
}
