// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
)

// Redist is what the redistribution of data from so many ranks to so many others has
// taken: medians of several, times in milliseconds. Names are those of settings.
type Redist struct {
	From     int    `json:"from"`
	To       int    `json:"to"`
	Method   string `json:"method"`
	Strategy string `json:"strategy"`
	Rounds   int    `json:"rounds"`
	// Msec is from the first source's start until the last target has all, with the
	// allocation and first touch of all memory that receives, whenever that was; without
	// the start of processes. WarmMsec is without that memory, TouchMsec it alone.
	Msec      float64 `json:"msec"`
	WarmMsec  float64 `json:"warm_msec"`
	TouchMsec float64 `json:"touch_msec"`
	// MovedBytes have come to other processes, LeastBytes had to.
	MovedBytes int64 `json:"moved_bytes"`
	LeastBytes int64 `json:"minimum_bytes"`
	// Iterations are those of the sources meanwhile, with the parts of those that were
	// under way at either end; Omega is by how much longer they were than without; 0: there
	// were none.
	Iterations float64 `json:"iterations"`
	Omega      float64 `json:"omega"`
	// Of an iteration before and after; 0: the program has none.
	FromIterMsec float64 `json:"from_iter_msec"`
	ToIterMsec   float64 `json:"to_iter_msec"`
	// MiB of the data, and the totals beside what was measured with it (see RedistTotals);
	// 0: there are none.
	MiB            float64 `json:"mib"`
	TotalMsec      float64 `json:"total_msec,omitempty"`
	EqualTotalMsec float64 `json:"equal_total_msec,omitempty"`
}

// BlockingStrategy is that of a redistribution for which sources wait; with every other
// one they iterate meanwhile.
const BlockingStrategy = "blocking"

// inPlace is the method of data that lies where all see it.
const inPlace = "inplace"

// Moves reports whether data moves at all.
func (r *Redist) Moves() bool { return r.Method != inPlace }

// Background reports whether sources iterate meanwhile.
func (r *Redist) Background() bool { return r.Strategy != BlockingStrategy }

func (r *Redist) numbers() []column {
	return []column{
		{"msec", &r.Msec}, {"warm", &r.WarmMsec}, {"touch", &r.TouchMsec}, {"omega", &r.Omega}, {"iterations", &r.Iterations},
		{"iter from", &r.FromIterMsec}, {"iter to", &r.ToIterMsec},
	}
}

// SetRedist fills r from several redistributions between the same numbers of ranks by the
// same method and strategy. An empty sample is a bug of the caller.
func (r *Result) SetRedist(sample []Redist) {
	first := sample[0]
	r.Redist = &Redist{
		From: first.From, To: first.To, Method: first.Method, Strategy: first.Strategy, Rounds: len(sample),
		MovedBytes: first.MovedBytes, LeastBytes: first.LeastBytes,
	}
	usec := make([]float64, len(sample))
	for i := range sample {
		usec[i] = 1e3 * sample[i].Msec
		r.Redist.MovedBytes = max(r.Redist.MovedBytes, sample[i].MovedBytes)
	}
	r.SetTimes(usec)
	for k, c := range r.Redist.numbers() {
		var values []float64
		for i := range sample {
			if v := *sample[i].numbers()[k].value; v > 0 || c.name != "omega" {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			*c.value = short(Median(values))
		}
	}
}

func (r *Redist) check() error {
	for _, c := range r.numbers() {
		if v := *c.value; v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v", c.name, v)
		}
	}
	if r.From < 1 || r.To < 1 || r.Method == "" || r.Strategy == "" || r.Rounds < 1 || r.MovedBytes < 0 || r.LeastBytes < 0 {
		return fmt.Errorf("a redistribution is %+v", *r)
	}
	return nil
}

// RedistTotal is how long it takes to redistribute and to get as far in the program as
// others do, in milliseconds; see RedistTotals. NaN: that is not known.
type RedistTotal struct{ Msec, EqualMsec float64 }

// RedistTotals are the totals of redistributions of the same data between the same numbers
// of ranks, of a program with iterations: by the study's equations 1 and 2
//
//	T_blk = R_blk + N* t_ND,  T_bg(V) = R_bg(V)
//
// with N* the least of the iterations of the background variants that move data, and, where every one gets as
// far as the one that has done most (max N),
//
//	R_blk + (max N) t_ND,  R_bg(V) + (max N - N(V)) t_ND.
//
// t_ND is the median of all of them. Where nothing goes in the background N* and max N are
// 0. Results of others are refused with NaN.
func RedistTotals(rs []Result) []RedistTotal {
	var iter []float64
	least, most := math.Inf(1), 0.0
	for _, r := range rs {
		if r.Redist == nil {
			continue
		}
		if r.Redist.ToIterMsec > 0 {
			iter = append(iter, r.Redist.ToIterMsec)
		}
		if r.Redist.Background() && r.Redist.Moves() {
			least, most = min(least, r.Redist.Iterations), max(most, r.Redist.Iterations)
		}
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	t := Median(iter)
	list := make([]RedistTotal, len(rs))
	for i, r := range rs {
		list[i] = RedistTotal{math.NaN(), math.NaN()}
		switch x := r.Redist; {
		case x == nil || len(iter) == 0:
		case x.Background():
			list[i] = RedistTotal{x.Msec, x.Msec + (most-x.Iterations)*t}
		default:
			list[i] = RedistTotal{x.Msec + least*t, x.Msec + most*t}
		}
	}
	return list
}

// SetRedistTotals notes the totals of redistributions that were measured together.
func SetRedistTotals(rs []Result) {
	for i, t := range RedistTotals(rs) {
		if x := rs[i].Redist; x != nil && !math.IsNaN(t.Msec) {
			x.TotalMsec, x.EqualTotalMsec = short(t.Msec), short(t.EqualMsec)
		}
	}
}

// RedistTable writes results of the same data and numbers of ranks as a table for a
// terminal, with their totals.
func RedistTable(w io.Writer, rs []Result) error {
	_, err := fmt.Fprintf(w, "%-12s %4s %4s %8s %-11s %-9s %9s %9s %9s %7s %6s %9s %9s %9s %9s\n", "transport", "from", "to", "bytes",
		"method", "strategy", "msec", "warm", "touch", "omega", "iters", "total", "equal", "moved MB", "least MB")
	totals := RedistTotals(rs)
	for i, r := range rs {
		if err != nil {
			return err
		}
		x := r.Redist
		if x == nil {
			continue
		}
		omega := "-"
		if x.Omega > 0 {
			omega = Number(x.Omega)
		}
		_, err = fmt.Fprintf(w, "%-12s %4d %4d %8s %-11s %-9s %9s %9s %9s %7s %6s %9s %9s %9s %9s\n", r.Transport, x.From, x.To, Bytes(float64(r.Bytes)),
			x.Method, x.Strategy, Number(x.Msec), Number(x.WarmMsec), Number(x.TouchMsec), omega, Number(x.Iterations),
			Number(totals[i].Msec), Number(totals[i].EqualMsec), Number(float64(x.MovedBytes)/1e6), Number(float64(x.LeastBytes)/1e6))
	}
	return err
}
