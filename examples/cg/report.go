// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gompi/mam"
	"gompi/mpi"
)

// report is what the root prints.
type report struct {
	opt      options
	solver   *solver
	began    time.Time // of this process
	loading  time.Duration
	since    time.Time // from when on this process iterates
	first    int       // how many iterations there were before
	ranks    int
	rows     extent
	nonzeros extent
	residual float64 // recomputed from x
	offOne   float64 // max |x - 1|
	solving  time.Duration
	sent     traffic // by the ranks of the end
}

// loaded is called when the ranks of the beginning have their rows. Collective.
func (r *report) loaded(comm *mpi.Comm) error {
	if err := comm.Barrier(); err != nil {
		return err
	}
	r.since = time.Now()
	r.loading = r.since.Sub(r.began)
	if name := os.Getenv("GOMPI_JOB"); name != "" && r.opt.pause > 0 && comm.Rank() == root {
		_, err := fmt.Printf("try: gompictl resize %s +2\n", name)
		return err
	}
	return nil
}

// resized tells of a change.
func (r *report) resized(m *mam.Module) error {
	s := r.solver
	if r.since.IsZero() { // this process has come
		r.since, r.first = time.Now(), s.Done
	}
	if m.Comm().Rank() != root {
		return nil
	}
	t := m.Times()
	_, err := fmt.Printf("iteration %d, residual %.3e: %d ranks, %d before; the change took %v\n",
		s.Done, s.residuals[s.Done], t.ND, t.NS, t.Total.Round(10*time.Microsecond))
	return err
}

// over is called when the iterations are over. Collective.
func (r *report) over(m *mam.Module) error {
	comm, s := m.Comm(), r.solver
	r.solving, r.ranks = time.Since(r.since), comm.Size()
	sent := s.sent // what follows is not part of the work
	var err error
	if r.residual, r.offOne, err = s.check(s.x); err != nil {
		return err
	}
	all, err := gather(comm, int64(s.a.rows()), int64(len(s.val)), sent.setup, sent.halo, sent.sums)
	if err != nil || comm.Rank() != root {
		return err
	}
	r.rows, r.nonzeros, r.sent = all[0], all[1], traffic{all[2].sum, all[3].sum, all[4].sum}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	if r.opt.plot != "" {
		if err := r.draw(r.opt.plot); err != nil {
			return err
		}
	}
	if !s.Converged {
		return fmt.Errorf("%s: no convergence to %g in %d iterations", r.opt.matrix, r.opt.tol, s.Done)
	}
	return nil
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
	n, iterations := r.rows.sum, r.solver.Done
	line("matrix", "%s: %d x %d, %d nonzeros, |b| = %.16e", filepath.Base(r.opt.matrix), n, n, r.nonzeros.sum, r.solver.Norm)
	line("ranks", "%d, each %d to %d rows, %d to %d nonzeros", r.ranks, r.rows.least, r.rows.most, r.nonzeros.least, r.nonzeros.most)
	line("iterations", "%d", iterations)
	line("residual", "%.3e, recomputed %.3e", r.solver.residuals[iterations], r.residual)
	if r.opt.rhs == "" {
		line("error", "%.3e = max|x-1|", r.offOne)
	}
	line("time", "%v per iteration, %v in all, %v to read and distribute",
		(r.solving / time.Duration(max(iterations-r.first, 1))).Round(100*time.Nanosecond),
		r.solving.Round(10*time.Microsecond), r.loading.Round(10*time.Microsecond))
	line("bytes", "%d communicated: %d to distribute, %d in ghosts, %d in sums",
		r.sent.setup+r.sent.halo+r.sent.sums, r.sent.setup, r.sent.halo, r.sent.sums)
	return err
}

// draw writes the history of the residuals as SVG. The drawing is gompiplot's: what
// draws sets up fonts before main runs, and each rank would pay for that.
func (r *report) draw(file string) error {
	type axis struct {
		Label  string `json:"label"`
		Linear bool   `json:"linear,omitempty"`
	}
	type series struct {
		X []float64 `json:"x"`
		Y []float64 `json:"y"`
	}
	residuals := r.solver.history()
	iterations := make([]float64, len(residuals))
	for i := range iterations {
		iterations[i] = float64(i)
	}
	figure, err := json.Marshal(map[string]any{
		"title":  fmt.Sprintf("%s, %d ranks", filepath.Base(r.opt.matrix), r.ranks),
		"x":      axis{"iteration", true},
		"y":      axis{"residual |b - A x| / |b|", false},
		"series": []series{{iterations, residuals}},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	plotter, err := plotter()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	cmd := exec.Command(plotter, "figure")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(figure), os.Stderr
	svg, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %s: %w", file, plotter, err)
	}
	return os.WriteFile(file, svg, 0o666)
}

// plotter finds gompiplot, which `make build` puts beside this program.
func plotter() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), "gompiplot")); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("gompiplot")
	if err != nil {
		return "", errors.New("no gompiplot beside this program nor in PATH: go build gompi/cmd/gompiplot makes it")
	}
	return path, nil
}
