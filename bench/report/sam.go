// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// Sam is a run of the synthetic application: groups of ranks, one after the other, and the
// changes between them. Times are in milliseconds.
type Sam struct {
	Config  string `json:"config"`            // the name of the file
	Variant string `json:"variant,omitempty"` // what was chosen of alternatives, and the sizes
	// Key tells configurations apart, Repetition runs of one.
	Key        string      `json:"key"`
	Repetition int         `json:"repetition"`
	TotalMsec  float64     `json:"total_msec"` // of the whole, without calibrations
	Stages     [][]string  `json:"stages"`     // what the stages of each phase do
	Groups     []SamGroup  `json:"groups"`
	Resizes    []SamResize `json:"resizes"`
}

// SamGroup is what so many ranks have done: iterations, some of them during the change to
// the next group.
type SamGroup struct {
	Procs  int        `json:"procs"`
	Phases []SamPhase `json:"phases"`
}

// SamPhase is the iterations of a group in a phase.
type SamPhase struct {
	Phase int `json:"phase"`
	// AsyncIters are those of the last iterations that began while the change to the next
	// group was coming or in its user phase; Overlapped those since it was asked for.
	AsyncIters int `json:"async_iters"`
	Overlapped int `json:"overlapped"`
	// IterMsec are the times of iterations, StageMsec those of each stage in them: the
	// greatest, the mean or the median of the ranks.
	IterMsec  []float64   `json:"iter_msec"`
	StageMsec [][]float64 `json:"stage_msec"`
}

// SamResize is a change: the longest of the ranks that are there afterwards.
type SamResize struct {
	From     int    `json:"from"`
	To       int    `json:"to"`
	Process  string `json:"process"`
	Method   string `json:"method"`
	Strategy string `json:"strategy"`
	// RMSMsec is until the change was granted, SpawnMsec from then until newcomers were
	// ready; 0 if nobody who knows has stayed.
	RMSMsec    float64 `json:"rms_msec"`
	SpawnMsec  float64 `json:"spawn_msec"`
	AsyncMsec  float64 `json:"async_msec"` // constant data, while sources iterate
	UserMsec   float64 `json:"user_msec"`
	SyncMsec   float64 `json:"sync_msec"` // data that moved at the commit
	TouchMsec  float64 `json:"touch_msec"`
	CommitMsec float64 `json:"commit_msec"`
	// TotalMsec is from the request until the new ranks go on.
	TotalMsec  float64 `json:"total_msec"`
	MovedBytes int64   `json:"moved_bytes"`
}

// times are all times of a resize, under the names of a table.
func (r *SamResize) times() []column {
	return []column{
		{"rms", &r.RMSMsec}, {"spawn", &r.SpawnMsec}, {"async", &r.AsyncMsec}, {"user", &r.UserMsec}, {"sync", &r.SyncMsec},
		{"touch", &r.TouchMsec}, {"commit", &r.CommitMsec}, {"total", &r.TotalMsec},
	}
}

// Times are all times of the change, in the order of SamTimeNames.
func (r *SamResize) Times() (list []float64) { return valuesOf(r.times()) }

// SamTimeNames are the names that a table has for Times.
func SamTimeNames() []string { return namesOf(new(SamResize).times()) }

// Shorten rounds all times to what is no noise.
func (s *Sam) Shorten() {
	s.TotalMsec = short(s.TotalMsec)
	all := func(list []float64) {
		for i := range list {
			list[i] = short(list[i])
		}
	}
	for _, g := range s.Groups {
		for _, p := range g.Phases {
			all(p.IterMsec)
			for _, list := range p.StageMsec {
				all(list)
			}
		}
	}
	for i := range s.Resizes {
		for _, c := range s.Resizes[i].times() {
			*c.value = short(*c.value)
		}
	}
}

func (s *Sam) check() error {
	wrong := func(v float64) bool { return v < 0 || math.IsNaN(v) || math.IsInf(v, 0) }
	if wrong(s.TotalMsec) || s.Repetition < 0 {
		return fmt.Errorf("repetition %d took %v", s.Repetition, s.TotalMsec)
	}
	if len(s.Groups) != len(s.Resizes)+1 {
		return fmt.Errorf("%d groups and %d resizes", len(s.Groups), len(s.Resizes))
	}
	for _, g := range s.Groups {
		if g.Procs < 1 {
			return fmt.Errorf("a group of %d", g.Procs)
		}
		for _, p := range g.Phases {
			if p.Phase >= len(s.Stages) || p.Phase >= 0 && len(p.StageMsec) != len(s.Stages[p.Phase]) {
				return fmt.Errorf("phase %d has %d stages", p.Phase, len(p.StageMsec))
			}
			lists := append([][]float64{p.IterMsec}, p.StageMsec...)
			if p.Phase < 0 || p.AsyncIters < 0 || p.Overlapped < 0 || p.AsyncIters > len(p.IterMsec) || p.Overlapped > len(p.IterMsec) {
				return fmt.Errorf("phase %d: %d of %d iterations", p.Phase, max(p.AsyncIters, p.Overlapped), len(p.IterMsec))
			}
			for _, list := range lists {
				if len(list) != len(p.IterMsec) {
					return fmt.Errorf("phase %d: %d iterations, %d times of a stage", p.Phase, len(p.IterMsec), len(list))
				}
				for _, v := range list {
					if wrong(v) {
						return fmt.Errorf("phase %d: an iteration of %v", p.Phase, v)
					}
				}
			}
		}
	}
	for i := range s.Resizes {
		r := &s.Resizes[i]
		for _, c := range r.times() {
			if wrong(*c.value) {
				return fmt.Errorf("%s is %v", c.name, *c.value)
			}
		}
		if r.From < 1 || r.To < 1 || r.MovedBytes < 0 {
			return fmt.Errorf("from %d to %d ranks, %d bytes", r.From, r.To, r.MovedBytes)
		}
	}
	return nil
}

// SamHeader writes the head of the table of which SamRow writes the lines.
func SamHeader(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%11s %7s %11s %11s %4s  %s\n", "total ms", "iters", "median ms", "resizes ms", "rep", "variant")
	return err
}

// SamRow writes a line of the table, and one for each change.
func SamRow(w io.Writer, r Result) error {
	s := r.Sam
	var iters []float64
	for _, g := range s.Groups {
		for _, p := range g.Phases {
			iters = append(iters, p.IterMsec...)
		}
	}
	resizes := 0.0
	for _, x := range s.Resizes {
		resizes += x.TotalMsec
	}
	_, err := fmt.Fprintf(w, "%11s %7d %11s %11s %4d  %s\n", Number(s.TotalMsec), len(iters), Number(Median(iters)), Number(resizes), s.Repetition, s.Name())
	for i := range s.Resizes {
		x := &s.Resizes[i]
		text := fmt.Sprintf("    %d -> %d %s %s %s:", x.From, x.To, x.Process, x.Method, x.Strategy)
		for _, c := range x.times() {
			text += " " + c.name + " " + Number(*c.value)
		}
		overlapped := 0
		for _, p := range s.Groups[i].Phases {
			overlapped += p.Overlapped
		}
		if err == nil {
			_, err = fmt.Fprintln(w, text+" ms, "+strconv.Itoa(overlapped)+" iterations meanwhile")
		}
	}
	return err
}

// Name is what a run is called beside others.
func (s *Sam) Name() string {
	if s.Variant == "" {
		return s.Config
	}
	return s.Variant
}
