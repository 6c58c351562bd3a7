// SPDX-License-Identifier: Apache-2.0

// Package report is what a measurement is and how it is told: the JSON line,
// the statistics behind it, a table for a terminal and figures as data. It
// measures and draws nothing.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Result is one measured point; as JSON, one object a line. The field names
// are a contract with scripts.
type Result struct {
	Bench     string `json:"bench"`
	Transport string `json:"transport"`
	Ranks     int    `json:"ranks"`
	Bytes     int64  `json:"bytes"` // of one message, or of the buffer of a collective
	// Usec is the median time of one operation in microseconds; the others
	// are the fastest and the 99th percentile of the same sample.
	Usec    float64 `json:"usec"`
	UsecMin float64 `json:"usec_min"`
	UsecP99 float64 `json:"usec_p99"`
	// MBps is Bytes/Usec: 10^6 bytes a second. 0 where there are no bytes.
	MBps float64 `json:"MBps"`
	// Allocs are heap allocations of rank 0 per operation.
	Allocs float64 `json:"allocs"`
	// Overlap is how much of a nonblocking collective was hidden behind
	// computing, in per cent; nil: not measured.
	Overlap *float64 `json:"overlap,omitempty"`
	// Target is what was measured while the target of one-sided operations
	// worked; nil: not measured.
	Target *Target `json:"target,omitempty"`
	// Of a point of two ranks, in each of two states of the machine; nil: there is one.
	*States
	// Batches are its blocks; nil: they were not asked for.
	Batches []Batch `json:"batches,omitempty"`
	// Curve says where time falls over size, of a curve; nil: it is none.
	Curve *Curve `json:"curve,omitempty"`
	// First says of which early call on a communicator this is the time; nil: it
	// makes no difference.
	First *First `json:"first,omitempty"`
	// Redist is what the redistribution of data has taken, whose time is Usec; nil: it is
	// none.
	Redist *Redist `json:"-"`
	// Of a change of the number of ranks, whose time is Usec; nil: it is none.
	*Resize
	// Of processes that were spawned, likewise.
	*Spawn
	// Sam is a run of the synthetic application, whose time is Usec; nil: it is none.
	Sam *Sam `json:"sam,omitempty"`
}

// First says what is new in a measurement of first calls.
type First struct {
	Of   string `json:"of"`             // "job", "duplicate" or "group": the communicator
	Call int    `json:"call,omitempty"` // on it, from 1 on; 0: it is no call on one
}

// Target says how one-sided operations and the work of their target disturb
// each other.
type Target struct {
	Does string  `json:"does"` // "computing" or "streaming"
	Usec float64 `json:"usec"` // of an operation meanwhile, the median
	// Slowdown is how much longer the work takes than beside a rank that sleeps,
	// in per cent; SlowdownOwn is that beside a rank that does the same
	// operations on its own memory.
	Slowdown    float64 `json:"slowdown"`
	SlowdownOwn float64 `json:"slowdown_own"`
}

// maxLine is the longest JSON line that Read takes, in bytes: runs of the synthetic
// application have the times of all iterations.
const maxLine = 1 << 24

// Write writes r as one JSON line.
func Write(w io.Writer, r Result) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("result of %s at %d bytes: %w", r.Bench, r.Bytes, err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// redistBench is the name of what has a Redist, whose fields stand beside those of the
// Result.
const redistBench = "redist"

// plain is a Result without its methods.
type plain Result

// MarshalJSON implements [json.Marshaler].
func (r Result) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(plain(r))
	if err != nil || r.Redist == nil {
		return b, err
	}
	more, err := json.Marshal(r.Redist)
	if err != nil {
		return nil, err
	}
	return append(append(b[:len(b)-1], ','), more[1:]...), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Result) UnmarshalJSON(b []byte) error {
	p := plain{}
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	if p.Bench == redistBench {
		p.Resize, p.Spawn = nil, nil // fields of the same name
		p.Redist = new(Redist)
		if err := json.Unmarshal(b, p.Redist); err != nil {
			return err
		}
	}
	*r = Result(p)
	return nil
}

// Read reads JSON lines up to the end of r. Empty lines are skipped; fields
// that Result does not have are ignored, since other benchmarks carry more.
// name stands in errors, with the line number.
func Read(name string, r io.Reader) ([]Result, error) {
	var rs []Result
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	line := 0
	for s.Scan() {
		line++
		if len(s.Bytes()) == 0 {
			continue
		}
		var x Result
		if err := json.Unmarshal(s.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if err := x.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		rs = append(rs, x)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, line+1, err)
	}
	return rs, nil
}

func (r *Result) check() error {
	switch {
	case r.Bench == "":
		return fmt.Errorf(`no field "bench"`)
	case r.Ranks < 0:
		return fmt.Errorf("ranks is %d", r.Ranks)
	case r.Bytes < 0:
		return fmt.Errorf("bytes is %d", r.Bytes)
	case r.First != nil && r.First.Call < 0:
		return fmt.Errorf("call is %d", r.First.Call)
	}
	for _, f := range []struct {
		name string
		v    float64
	}{{"usec", r.Usec}, {"usec_min", r.UsecMin}, {"usec_p99", r.UsecP99}, {"MBps", r.MBps}, {"allocs", r.Allocs}} {
		if f.v < 0 || math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			return fmt.Errorf("%s is %v", f.name, f.v)
		}
	}
	if r.Overlap != nil && !(0 <= *r.Overlap && *r.Overlap <= 100) {
		return fmt.Errorf("overlap is %v", *r.Overlap)
	}
	if r.States != nil {
		if err := r.States.check(); err != nil {
			return err
		}
	}
	if r.Resize != nil {
		return r.Resize.check()
	}
	if r.Spawn != nil {
		return r.Spawn.check()
	}
	if r.Redist != nil {
		return r.Redist.check()
	}
	if r.Sam != nil {
		return r.Sam.check()
	}
	if r.Curve != nil {
		return r.Curve.check()
	}
	if r.Target != nil {
		return r.Target.check()
	}
	return nil
}

func (t *Target) check() error {
	for _, v := range []float64{t.Usec, 100 + t.Slowdown, 100 + t.SlowdownOwn} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("target is %+v", *t)
		}
	}
	return nil
}
