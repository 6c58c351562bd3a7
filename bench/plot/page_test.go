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
	}
	var b bytes.Buffer
	if err := HTML(&b, "a & b", rs); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for what, want := range map[string]int{
		"<svg ":              3, // latency: time and bandwidth; barrier: time against ranks
		"<h2 ":               3,
		">shm, 2 ranks<":     2,
		"<tr><td":            6, // the three equal points are one
		"<td>0.200</td>":     4, // their median, and three other columns
		"one<>":              0,
		"<h1>a &amp; b</h1>": 1,
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

// FuzzHTML: whatever Read accepts can be shown.
func FuzzHTML(f *testing.F) {
	f.Add([]byte(`{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":0.11,"usec_min":0.1,"usec_p99":0.2,"MBps":72.7,"allocs":0}`))
	f.Add([]byte("{\"bench\":\"a\",\"bytes\":1}\n{\"bench\":\"a\",\"bytes\":9223372036854775807,\"usec\":1e308,\"MBps\":5e-324}"))
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
