// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"strings"
	"testing"

	"gompi/bench/report"
)

func TestHTML(t *testing.T) {
	rs := []report.Result{
		{Bench: "latency", Transport: "tcp", Ranks: 2, Bytes: 8, Usec: 5, UsecMin: 4, UsecP99: 9, MBps: 1.6},
		{Bench: "latency", Transport: "shm", Ranks: 2, Bytes: 8, Usec: 0.3, UsecMin: 0.1, UsecP99: 0.2, MBps: 80},
		{Bench: "latency", Transport: "shm", Ranks: 2, Bytes: 8, Usec: 0.1, UsecMin: 0.1, UsecP99: 0.2, MBps: 80},
		{Bench: "latency", Transport: "shm", Ranks: 2, Bytes: 8, Usec: 0.2, UsecMin: 0.1, UsecP99: 0.2, MBps: 80},
		{Bench: "latency", Transport: "shm", Ranks: 2, Bytes: 4096, Usec: 2, UsecMin: 1, UsecP99: 3, MBps: 2048},
		{Bench: "barrier", Transport: "shm", Ranks: 2, Bytes: 0, Usec: 0.2, UsecMin: 0.1, UsecP99: 0.2, MBps: 0},
		{Bench: "barrier", Transport: "shm", Ranks: 4, Bytes: 0, Usec: 5, UsecMin: 4, UsecP99: 6, MBps: 0},
		{Bench: "one<>", Transport: "shm", Ranks: 4, Bytes: 0, Usec: 5, UsecMin: 4, UsecP99: 6, MBps: 0},
		{Bench: "redist, cold", Transport: "gompi/shm", Ranks: 4, Bytes: 9, Usec: 5, UsecMin: 4, UsecP99: 6, MBps: 0},
		{Bench: "redist, cold", Transport: "mpich/shm", Ranks: 4, Bytes: 9, Usec: 10, UsecMin: 4, UsecP99: 6, MBps: 0},
	}
	var b bytes.Buffer
	if err := HTML(&b, "a & b", rs); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for what, want := range map[string]int{
		"<svg ":                 4, // latency: time and bandwidth; barrier: time against ranks; redist: bars of transports
		"<h2 ":                  4,
		"id=\"3-redist--cold\"": 1,
		"<td>0.500</td>":        1, // of the peer's time
		">shm, 2 ranks<":        2,
		"<tr><td":               8, // the three equal points are one
		"<td>0.200</td>":        4, // their median, and three other columns
		"one<>":                 0,
		"<h1>a &amp; b</h1>":    1,
	} {
		if got := strings.Count(page, what); got != want {
			t.Errorf("%q stands %d times, want %d", what, got, want)
		}
	}
	if strings.Index(page, ">barrier<") > strings.Index(page, ">latency<") {
		t.Error("sections are not sorted")
	}
	if rs[0].Transport != "tcp" {
		t.Error("the caller's slice was changed")
	}
	b.Reset()
	if err := HTML(&b, "", nil); err != nil || !strings.Contains(b.String(), "No results") {
		t.Errorf("no results: %v", err)
	}
}

// TestPageOfAll: of each kind of results there is what belongs on the page.
func TestPageOfAll(t *testing.T) {
	page := string(pageOfAll(t))
	for what, want := range map[string]int{
		`<h2 id="`:                7,
		"<nav><a href=\"#0-bw\">": 1,
		// Peers: three figures and a column, 0.5 in each row of ours over shared memory.
		">latency: time over that of the best peer<": 1,
		"<th>to best peer</th>":                      2,
		// Both states of the machine, a line each.
		">curve: time, near and far<":    1,
		">resize: ranks are added<":      1,
		">resize: ranks are removed<":    1,
		">28+84<":                        1,
		">spawn: until all have joined<": 1,
		// One blocking figure less for a size than of those in the background.
		">time, blocking, 256 MiB over shm<":                            1,
		">time into warm memory, blocking, 256 MiB over shm<":           1,
		">omega, in the background (wd), 256 MiB over shm<":             1,
		">iterations meanwhile, by a thread (t), 64 MiB over shm<":      1,
		">total at equal progress, in the background (nb), 64 MiB over": 1,
		">time by size, blocking, 1\u21922 over shm<":                   1,
		">time by size, blocking, 1\u21924 over shm<":                   0,
		"<td class=\"l\">8\u21924</td><td class=\"l\">inplace</td>":     4,
		">cg.json: the whole<":                                          1,
		">cg.json: changes<":                                            1,
		">cg.json: stages of an iteration of phase 1<":                  1,
		">2: allgather<":               1,
		">group 1: 4 ranks, changing<": 8, // of as many runs as get a figure
		"cg.json: runs":                1,
	} {
		if got := strings.Count(page, what); got != want {
			t.Errorf("%q stands %d times, want %d", what, got, want)
		}
	}
	// The totals are the study's: 1 to 2 ranks, blocking by col takes 32 ms; t makes the
	// fewest iterations in the background, 1 of 7 ms, and who makes the most, of those with which
	// data moves, 7.
	if row := `<td class="l">1→2</td><td class="l">col</td><td class="l">blocking</td><td>32.0</td><td>1.00</td><td>0</td><td>-</td><td>0</td><td>39.0</td><td>81.0</td>`; !strings.Contains(page, row) {
		t.Errorf("no row %s", row)
	}
	if strings.Contains(page, "NaN") {
		t.Error("NaN on the page")
	}
}

// FuzzHTML: whatever Read accepts can be shown.
func FuzzHTML(f *testing.F) {
	f.Add([]byte(`{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":0.11,"usec_min":0.1,"usec_p99":0.2,"MBps":72.7,"allocs":0}`))
	f.Add([]byte("{\"bench\":\"a\",\"bytes\":1}\n{\"bench\":\"a\",\"bytes\":9223372036854775807,\"usec\":1e308,\"MBps\":5e-324}"))
	var all bytes.Buffer
	for _, r := range everything() {
		if r.Sam != nil || r.Redist != nil || r.Resize != nil {
			all.Reset()
			if err := report.Write(&all, r); err != nil {
				f.Fatal(err)
			}
			f.Add(bytes.Clone(all.Bytes()))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		rs, err := report.Read("f", bytes.NewReader(in))
		if err != nil {
			return
		}
		if err := HTML(&bytes.Buffer{}, "t", rs); err != nil {
			t.Fatal(err)
		}
	})
}
