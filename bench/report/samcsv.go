// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// SamTables are the tables of runs of the synthetic application that its analyses work on,
// by name: "global" has a row a run, "malleability" one a change, "iterations" one an
// iteration. The first row has the names of the columns; times are in milliseconds.
func SamTables(rs []Result) map[string][][]string {
	names := []string{"config", "variant", "key", "repetition"}
	global := [][]string{append(names[:4:4], "transport", "sizes", "bytes", "total_msec", "iterations", "async_iters", "resizes_msec")}
	changes := [][]string{append(names[:4:4], "resize", "from", "to", "process", "method", "strategy")}
	for _, c := range new(SamResize).times() {
		changes[0] = append(changes[0], c.name+"_msec")
	}
	changes[0] = append(changes[0], "moved_bytes", "async_iters", "overlapped")
	iterations := [][]string{append(names[:4:4], "group", "procs", "phase", "iteration", "msec")}
	stages := 0
	for _, r := range rs {
		if r.Sam == nil {
			continue
		}
		s := r.Sam
		run := []string{s.Config, s.Variant, s.Key, strconv.Itoa(s.Repetition)}
		sizes, done, async, spent := "", 0, 0, 0.0
		for i, g := range s.Groups {
			groupAsync, overlapped, in := 0, 0, 0
			for _, p := range g.Phases {
				groupAsync, overlapped, in = groupAsync+p.AsyncIters, overlapped+p.Overlapped, in+len(p.IterMsec)
				stages = max(stages, len(p.StageMsec))
				for k, v := range p.IterMsec {
					row := append(run[:4:4], strconv.Itoa(i), strconv.Itoa(g.Procs), strconv.Itoa(p.Phase), strconv.Itoa(k), numeral(v))
					for _, list := range p.StageMsec {
						row = append(row, numeral(list[k]))
					}
					iterations = append(iterations, row)
				}
			}
			if i > 0 {
				sizes += "->"
			}
			sizes += strconv.Itoa(g.Procs)
			done, async = done+in, async+groupAsync
			if i == len(s.Resizes) {
				continue
			}
			x := &s.Resizes[i]
			spent += x.TotalMsec
			row := append(run[:4:4], strconv.Itoa(i), strconv.Itoa(x.From), strconv.Itoa(x.To), x.Process, x.Method, x.Strategy)
			for _, c := range x.times() {
				row = append(row, numeral(*c.value))
			}
			changes = append(changes, append(row, strconv.FormatInt(x.MovedBytes, 10), strconv.Itoa(groupAsync), strconv.Itoa(overlapped)))
		}
		global = append(global, append(run[:4:4], r.Transport, sizes, strconv.FormatInt(r.Bytes, 10), numeral(s.TotalMsec), strconv.Itoa(done), strconv.Itoa(async), numeral(spent)))
	}
	for k := range stages {
		iterations[0] = append(iterations[0], fmt.Sprintf("stage%d_msec", k))
	}
	for i, row := range iterations { // of the widest phase
		for len(row) < len(iterations[0]) {
			row = append(row, "")
		}
		iterations[i] = row
	}
	return map[string][][]string{"global": global, "malleability": changes, "iterations": iterations}
}

func numeral(v float64) string { return strconv.FormatFloat(short(v), 'f', -1, 64) }

// WriteCSV writes a table, of which all rows are of one length.
func WriteCSV(w io.Writer, table [][]string) error {
	c := csv.NewWriter(w)
	return c.WriteAll(table)
}
