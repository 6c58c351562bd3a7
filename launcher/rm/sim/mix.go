// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gompi/internal/resize/col"
)

// Job is a job of a mix. Its JSON form is a line.
type Job struct {
	Name string `json:"name,omitempty"`
	// At is when it arrives, in seconds; Work is its time on one process, by the model of
	// its COL.
	At   float64 `json:"at"`
	Work float64 `json:"work"`
	// NP is the number of processes to begin with; 0: as its COL says. Limit bounds its
	// run time; 0: not known.
	NP    int     `json:"np,omitempty"`
	Limit float64 `json:"limit,omitempty"`
	// Follows: the job takes changes that it has not asked for.
	Follows bool     `json:"follows,omitempty"`
	COL     *col.COL `json:"col,omitempty"`
}

// Bounds of a mix.
const (
	MaxJobs = 1 << 20
	maxLine = 2 * col.MaxBytes
	maxTime = 1e9 // seconds
)

// Read reads a mix, a JSON object per line; name is for errors. The jobs are returned in
// order of arrival.
func Read(name string, r io.Reader) ([]Job, error) {
	var list []Job
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	n := 1
	for ; s.Scan(); n++ {
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		var raw struct {
			Job
			COL json.RawMessage `json:"col"`
		}
		d := json.NewDecoder(bytes.NewReader(s.Bytes()))
		d.DisallowUnknownFields()
		err := d.Decode(&raw)
		if err == nil && d.More() {
			err = errors.New("data after the object")
		}
		j := raw.Job
		if err == nil && len(raw.COL) > 0 && string(raw.COL) != "null" {
			j.COL, err = col.Decode(raw.COL)
		}
		if err == nil {
			err = j.check()
		}
		if err == nil && len(list) == MaxJobs {
			err = fmt.Errorf("more than %d jobs", MaxJobs)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		list = append(list, j)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n, err)
	}
	slices.SortStableFunc(list, func(a, b Job) int { return cmp.Compare(a.At, b.At) })
	return list, nil
}

func (j *Job) check() error {
	switch {
	case !(j.At >= 0 && j.At <= maxTime):
		return fmt.Errorf("at %v seconds", j.At)
	case !(j.Work > 0 && j.Work <= maxTime):
		return fmt.Errorf("work of %v seconds", j.Work)
	case !(j.Limit >= 0 && j.Limit <= maxTime):
		return fmt.Errorf("limit of %v seconds", j.Limit)
	case j.NP < 0 || j.NP > col.MaxSize:
		return fmt.Errorf("%d processes", j.NP)
	}
	return nil
}

// Write writes a mix as Read reads it.
func Write(w io.Writer, jobs []Job) error {
	e := json.NewEncoder(w)
	for i := range jobs {
		if err := e.Encode(&jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

// Day makes a mix of n jobs that arrive within span and would keep about nine tenths of
// the slots busy if none lost time. Sizes are mostly powers of two and times spread over
// two decades, as in the logs of parallel machines. Seven of ten jobs follow changes.
func Day(n, slots int, span time.Duration, seed uint64) []Job {
	r := rand.New(rand.NewPCG(seed, 29))
	most := max(1, slots/4)
	jobs := make([]Job, n)
	total := 0.0
	for i := range jobs {
		size := 1
		for size*2 <= most && r.IntN(4) > 0 {
			size *= 2
		}
		if r.IntN(5) == 0 {
			size = 1 + r.IntN(most)
		}
		serial := 0.002 * math.Exp(r.NormFloat64())
		j := Job{
			Name: fmt.Sprintf("job%d", i), At: r.Float64() * span.Seconds(), NP: size, Follows: r.IntN(10) < 7,
			COL: &col.COL{Version: col.Version, Model: &col.Model{Kind: col.Amdahl, Serial: serial, Parallel: 1 - min(serial, 0.5)}},
		}
		took := math.Exp(1.15 * r.NormFloat64()) // in some unit
		j.Work = took * j.COL.Speedup(size)
		total += took * float64(size)
		if j.Follows {
			j.COL.Min, j.COL.Max, j.COL.Pref = max(1, size/4), min(slots, 4*size), size
			j.COL.Hysteresis, j.COL.Settle = 0.05, 30
			j.COL.Cost = col.Number(1)
			j.COL.PowerOfTwo = size&(size-1) == 0 && r.IntN(3) == 0
		}
		jobs[i] = j
	}
	unit := 0.9 * span.Seconds() * float64(slots) / total
	for i := range jobs {
		j := &jobs[i]
		j.Work *= unit
		j.Limit = math.Ceil(j.Work / j.COL.Speedup(j.NP) * (1 + 2*r.Float64()))
	}
	slices.SortFunc(jobs, func(a, b Job) int { return cmp.Compare(a.At, b.At) })
	return jobs
}
