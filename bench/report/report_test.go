// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestJSON holds the field names and their order: scripts depend on them.
func TestJSON(t *testing.T) {
	r := Result{Bench: "latency", Transport: "shm", Ranks: 2, Bytes: 8, Usec: 0.11, UsecMin: 0.1, UsecP99: 0.2, MBps: 72.7273}
	want := `{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":0.11,"usec_min":0.1,"usec_p99":0.2,"MBps":72.7273,"allocs":0}` + "\n"
	var b bytes.Buffer
	if err := Write(&b, r); err != nil || b.String() != want {
		t.Fatalf("got %q, %v, want %q", b.String(), err, want)
	}
	got, err := Read("x", strings.NewReader("\n"+b.String()+"\n"))
	if err != nil || !reflect.DeepEqual(got, []Result{r}) {
		t.Errorf("read back %+v, %v", got, err)
	}
	b.Reset()
	r.Overlap = new(float64)
	want = strings.Replace(want, `"allocs":0`, `"allocs":0,"overlap":0`, 1)
	if err := Write(&b, r); err != nil || b.String() != want {
		t.Errorf("with an overlap: got %q, %v, want %q", b.String(), err, want)
	}
	if got, err := Read("x", strings.NewReader(strings.Replace(want, `"overlap":0`, `"overlap":101`, 1))); err == nil {
		t.Errorf("an overlap of 101 is taken: %+v", got)
	}
	b.Reset()
	r.Overlap, r.Target = nil, &Target{"computing", 5, 1.5, -0.1}
	want = `{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":0.11,"usec_min":0.1,"usec_p99":0.2,"MBps":72.7273,"allocs":0,` +
		`"target":{"does":"computing","usec":5,"slowdown":1.5,"slowdown_own":-0.1}}` + "\n"
	if err := Write(&b, r); err != nil || b.String() != want {
		t.Errorf("with a target: got %q, %v, want %q", b.String(), err, want)
	}
	if got, err := Read("x", &b); err != nil || !reflect.DeepEqual(got, []Result{r}) {
		t.Errorf("read back %+v, %v", got, err)
	}
	if got, err := Read("x", strings.NewReader(strings.Replace(want, "1.5", "-101", 1))); err == nil {
		t.Errorf("a slow-down of -101 is taken: %+v", got)
	}
	if err := Write(&b, Result{Bench: "bw", Usec: math.NaN()}); err == nil || !strings.Contains(err.Error(), "bw") {
		t.Errorf("NaN: got %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	ok := `{"bench":"bw","ranks":2,"extra":[1]}` + "\n"
	for in, want := range map[string]string{
		ok + "{":                            "f.json:2: unexpected end",
		ok + `{"ranks":2}`:                  `f.json:2: no field "bench"`,
		`{"bench":"bw","bytes":-1}`:         "f.json:1: bytes is -1",
		`{"bench":"bw","ranks":-7}`:         "f.json:1: ranks is -7",
		`{"bench":"bw","usec_p99":-0.5}`:    "f.json:1: usec_p99 is -0.5",
		`{"bench":"bw","usec":1e999}`:       "f.json:1: ",
		ok + strings.Repeat("x", maxLine+1): "f.json:2: ",
	} {
		if _, err := Read("f.json", strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", in, err, want)
		}
	}
}

func TestStatistics(t *testing.T) {
	v := []float64{1, 2, 3, 4}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.99: 3.97} {
		if got := Quantile(v, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
	unsorted := []float64{9, 1, 5}
	if got := Median(unsorted); got != 5 || unsorted[0] != 9 {
		t.Errorf("Median = %v, left %v", got, unsorted)
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("the median of nothing is a number")
	}

	r := Result{Bench: "latency", Bytes: 4096}
	r.SetTimes([]float64{3, 1, 2.0000004})
	if r.Usec != 2 || r.UsecMin != 1 || r.UsecP99 != 2.98 || r.MBps != 2048 {
		t.Errorf("got %+v", r)
	}
	r = Result{Bench: "barrier"}
	r.SetTimes([]float64{0})
	if r.Usec != 0 || r.MBps != 0 {
		t.Errorf("got %+v", r)
	}
	for v, want := range map[float64]float64{0.123456789: 0.123457, 1234567.8: 1234567.8, 1e-30: 1e-30, -2.00000001: -2} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %v, want %v", v, got, want)
		}
	}
}

// What a change of the number of ranks took stands beside the other fields, of other
// benchmarks there is nothing of it.
func TestResize(t *testing.T) {
	r := Result{Bench: "resize", Transport: "shm", Ranks: 28}
	r.SetResize([]Resize{
		{Mode: "sub", Delta: 56, TotalMsec: 30, AppOverheadMsec: 5, GoneMsec: 3},
		{Mode: "sub", Delta: 56, TotalMsec: 10, AppOverheadMsec: 1, GoneMsec: 2},
		{Mode: "sub", Delta: 56, TotalMsec: 20, AppOverheadMsec: 9, GoneMsec: 1},
	})
	if r.Usec != 20000 || r.UsecMin != 10000 || r.TotalMsec != 20 || r.AppOverheadMsec != 5 || r.GoneMsec != 2 {
		t.Errorf("%+v, %+v", r, *r.Resize)
	}
	var b, head, row strings.Builder
	if err := errors.Join(Write(&b, r), Write(&b, Result{Bench: "barrier"}), ResizeHeader(&head), ResizeRow(&row, r)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for _, key := range []string{"mode", "delta", "total_msec", "wait_msec", "initiation_msec", "app_overhead_msec", "skew_msec", "app_overhead_median_msec",
		"check_max_usec", "init_max_msec", "ready_msec", "first_barrier_msec", "later_barrier_msec", "gone_msec"} {
		if key = `"` + key + `":`; strings.Count(lines[0], key) != 1 || strings.Contains(lines[1], key) {
			t.Errorf("%s in %s, or in %s", key, lines[0], lines[1])
		}
	}
	got, err := Read("x", strings.NewReader(b.String()))
	if err != nil || !reflect.DeepEqual(got, []Result{r, {Bench: "barrier"}}) {
		t.Errorf("%+v, %v", got, err)
	}
	if h, r := head.String(), row.String(); len(h) != len(r) || !strings.HasPrefix(r, "shm          28  sub    56       20.0          0 ") {
		t.Errorf("\n%s%s", h, r)
	}
	for _, bad := range []string{`"mode":"x","delta":1`, `"mode":"add","delta":0`, `"mode":"add","delta":1,"wait_msec":-1`} {
		if _, err := Read("x", strings.NewReader(`{"bench":"resize",`+bad+`}`)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// A run of the synthetic application has its own object, and tables for analyses.
func TestSam(t *testing.T) {
	r := Result{Bench: "sam", Transport: "shm", Ranks: 2, Bytes: 100}
	r.SetTimes([]float64{5e4})
	r.Sam = &Sam{
		Config: "c.json", Variant: "2->4", Key: "k", Repetition: 1, TotalMsec: 50.00000004, Stages: [][]string{{"pi"}, {"pi", "bcast"}},
		Groups: []SamGroup{
			{2, []SamPhase{{0, 0, 0, []float64{1}, [][]float64{{0.5}}}, {1, 1, 2, []float64{2, 3, 4}, [][]float64{{1, 1, 1}, {1, 2, 3}}}}},
			{4, []SamPhase{{1, 0, 0, []float64{5}, [][]float64{{4}, {1}}}}},
		},
		Resizes: []SamResize{{2, 4, "merge", "pull", "wd", 1, 2, 3, 4, 5, 6, 7, 28, 99}},
	}
	r.Sam.Shorten()
	const want = `{"bench":"sam","transport":"shm","ranks":2,"bytes":100,"usec":50000,"usec_min":50000,"usec_p99":50000,"MBps":0.002,"allocs":0,` +
		`"sam":{"config":"c.json","variant":"2-\u003e4","key":"k","repetition":1,"total_msec":50,"stages":[["pi"],["pi","bcast"]],` +
		`"groups":[{"procs":2,"phases":[{"phase":0,"async_iters":0,"overlapped":0,"iter_msec":[1],"stage_msec":[[0.5]]},` +
		`{"phase":1,"async_iters":1,"overlapped":2,"iter_msec":[2,3,4],"stage_msec":[[1,1,1],[1,2,3]]}]},` +
		`{"procs":4,"phases":[{"phase":1,"async_iters":0,"overlapped":0,"iter_msec":[5],"stage_msec":[[4],[1]]}]}],` +
		`"resizes":[{"from":2,"to":4,"process":"merge","method":"pull","strategy":"wd","rms_msec":1,"spawn_msec":2,"async_msec":3,"user_msec":4,"sync_msec":5,` +
		`"touch_msec":6,"commit_msec":7,"total_msec":28,"moved_bytes":99}]}}` + "\n"
	var b, table strings.Builder
	if err := errors.Join(Write(&b, r), SamHeader(&table), SamRow(&table, r)); err != nil || b.String() != want {
		t.Fatalf("%v, got\n%swant\n%s", err, b.String(), want)
	}
	got, err := Read("x", strings.NewReader(want))
	if err != nil || !reflect.DeepEqual(got, []Result{r}) {
		t.Errorf("read back %+v, %v", got, err)
	}
	for _, bad := range [][2]string{
		{`"procs":4`, `"procs":0`}, {`"overlapped":2`, `"overlapped":4`}, {`"async_iters":1`, `"async_iters":-1`}, {`"stage_msec":[[4],[1]]`, `"stage_msec":[[4]]`},
		{`"stage_msec":[[4],[1]]`, `"stage_msec":[[4],[]]`}, {`[[0.5]]`, `[[-0.5]]`}, {`"phase":1`, `"phase":2`}, {`"phase":0`, `"phase":-1`}, {`"from":2`, `"from":0`},
		{`"rms_msec":1`, `"rms_msec":-1`}, {`"repetition":1`, `"repetition":-1`}, {`"total_msec":50`, `"total_msec":-50`}, {`"resizes":[{`, `"resizes":[],"x":[{`},
	} {
		text := strings.Replace(want, bad[0], bad[1], 1)
		if _, err := Read("x", strings.NewReader(text)); err == nil || text == want {
			t.Errorf("%s is taken", bad[1])
		}
	}
	if text := table.String(); !strings.Contains(text, "50.0       5        3.00        28.0    1  2->4\n    2 -> 4 merge pull wd: rms 1.00 ") || !strings.HasSuffix(text, "total 28.0 ms, 2 iterations meanwhile\n") {
		t.Errorf("\n%s", text)
	}
	tables := SamTables([]Result{{Bench: "barrier"}, r})
	var csv strings.Builder
	for _, name := range []string{"global", "malleability", "iterations"} {
		if err := WriteCSV(&csv, tables[name]); err != nil {
			t.Fatal(err)
		}
	}
	const run = "c.json,2->4,k,1,"
	if text := csv.String(); text != "config,variant,key,repetition,transport,sizes,bytes,total_msec,iterations,async_iters,resizes_msec\n"+
		run+"shm,2->4,100,50,5,1,28\n"+
		"config,variant,key,repetition,resize,from,to,process,method,strategy,rms_msec,spawn_msec,async_msec,user_msec,sync_msec,touch_msec,commit_msec,total_msec,moved_bytes,async_iters,overlapped\n"+
		run+"0,2,4,merge,pull,wd,1,2,3,4,5,6,7,28,99,1,2\n"+
		"config,variant,key,repetition,group,procs,phase,iteration,msec,stage0_msec,stage1_msec\n"+
		run+"0,2,0,0,1,0.5,\n"+run+"0,2,1,0,2,1,1\n"+run+"0,2,1,1,3,1,2\n"+run+"0,2,1,2,4,1,3\n"+run+"1,4,1,0,5,4,1\n" {
		t.Errorf("tables\n%s", text)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Header(&b); err != nil {
		t.Fatal(err)
	}
	for _, r := range []Result{
		{Bench: "latency", Transport: "shm", Ranks: 2, Bytes: 4 << 20, Usec: 390.4, UsecMin: 380, UsecP99: 1234.5, MBps: 10743.6},
		{Bench: "barrier", Transport: "tcp", Ranks: 8, Usec: 0.1044, UsecMin: 9.996, UsecP99: 99.96, Allocs: 0.00012},
		{Bench: "first_barrier", Transport: "shm", Ranks: 2, Usec: 1, UsecMin: 1, UsecP99: 1, First: &First{"job", 2}},
		{Bench: "first_make", Transport: "shm", Ranks: 2, Usec: 1, UsecMin: 1, UsecP99: 1, First: &First{"duplicate", 0}},
	} {
		if err := Row(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	want := `
bench               transport ranks    bytes        usec         min         p99        MB/s   allocs
latency             shm           2       4M         390         380        1234       10744        0
barrier             tcp           8        0       0.104        10.0         100           -  0.00012
first_barrier       shm           2        0        1.00        1.00        1.00           -        0  call 2 of a job
first_make          shm           2        0        1.00        1.00        1.00           -        0  of a duplicate
`[1:]
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3 * 0.1: "0.3", -2: "-2", 1e-9: "1e-09", 2.5e7: "2.5e+07", 250000: "250000",
	} {
		if got := shortest(v); got != want {
			t.Errorf("shortest(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		0: "0", 8: "8", 1024: "1K", 1536: "1536", 4 << 20: "4M", 1 << 32: "4G", 0.5: "0.5", 1 << 50: "1P",
	} {
		if got := Bytes(v); got != want {
			t.Errorf("Bytes(%v) = %q, want %q", v, got, want)
		}
	}
}

// FuzzRead: what Read accepts can be written again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":0.11,"usec_min":0.1,"usec_p99":0.2,"MBps":72.7,"allocs":0}`))
	f.Add([]byte("{\"bench\":\"a\",\"bytes\":1}\n{\"bench\":\"a\",\"bytes\":9223372036854775807,\"usec\":1e308,\"MBps\":5e-324}"))
	f.Add([]byte("null\n[]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		rs, err := Read("f", bytes.NewReader(in))
		if err != nil {
			return
		}
		var b bytes.Buffer
		for _, r := range rs {
			if err := Write(&b, r); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Read("f", &b)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := json.Marshal(rs)
		y, _ := json.Marshal(again)
		if !bytes.Equal(x, y) {
			t.Errorf("%s became %s", x, y)
		}
	})
}

func redistOf(method, strategy string, msec, iterations, after float64) Result {
	return Result{Bench: "redist", Bytes: 1 << 20, Redist: &Redist{
		From: 2, To: 4, Method: method, Strategy: strategy, Rounds: 1, Msec: msec, WarmMsec: msec, Iterations: iterations, ToIterMsec: after,
	}}
}

// The study's equations, and those of equal progress.
func TestRedistTotals(t *testing.T) {
	rs := []Result{
		redistOf("col", "blocking", 100, 0, 4),
		redistOf("col", "wd", 300, 7.5, 5),
		redistOf("pull", "wd", 200, 2.5, 6),
		{Bench: "barrier"},
		redistOf("inplace", "wd", 5, 0.5, 5), // moves nothing, and is no measure for the others
		redistOf("inplace", "blocking", 5, 0, 5),
	}
	nan := math.NaN()
	want := []RedistTotal{{100 + 2.5*5, 100 + 7.5*5}, {300, 300}, {200, 200 + 5*5}, {nan, nan}, {5, 5 + 7*5}, {5 + 2.5*5, 5 + 7.5*5}}
	if got := RedistTotals(rs); !slices.EqualFunc(got, want, sameTotal) {
		t.Errorf("%v, want %v", got, want)
	}
	// Nothing in the background: nothing is to be caught up with.
	if got := RedistTotals(rs[:1]); !slices.EqualFunc(got, []RedistTotal{{100, 100}}, sameTotal) {
		t.Errorf("%v", got)
	}
	// A program without iterations has no totals.
	if got := RedistTotals([]Result{redistOf("col", "blocking", 100, 0, 0)}); !slices.EqualFunc(got, []RedistTotal{{nan, nan}}, sameTotal) {
		t.Errorf("%v", got)
	}
}

func sameTotal(a, b RedistTotal) bool {
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	return same(a.Msec, b.Msec) && same(a.EqualMsec, b.EqualMsec)
}

func TestRedist(t *testing.T) {
	sample := []Redist{*redistOf("pull", "wd", 3, 2, 1).Redist, *redistOf("pull", "wd", 1, 3, 1).Redist, *redistOf("pull", "wd", 2, 1, 1).Redist}
	sample[0].Omega, sample[2].Omega, sample[1].MovedBytes = 1.5, 1.25, 9
	r := Result{Bench: "redist", Transport: "shm", Ranks: 2, Bytes: 4 << 20}
	r.SetRedist(sample)
	// A round in which no iteration fell into the redistribution has no omega.
	if x := r.Redist; r.Usec != 2000 || x.Msec != 2 || x.Iterations != 2 || x.Omega != 1.375 || x.MovedBytes != 9 || x.Rounds != 3 || !x.Background() {
		t.Errorf("%+v, %+v", r, x)
	}
	if rs := []Result{r}; r.Redist.TotalMsec != 0 || r.Redist.EqualTotalMsec != 0 {
		t.Errorf("%+v", rs[0].Redist)
	}
	r.Redist.MiB = 4
	SetRedistTotals([]Result{r})
	if x := r.Redist; x.TotalMsec != 2 || x.EqualTotalMsec != 2 {
		t.Errorf("totals %+v", x)
	}
	var b, table strings.Builder
	if err := errors.Join(Write(&b, r), RedistTable(&table, []Result{r})); err != nil {
		t.Fatal(err)
	}
	got, err := Read("x", strings.NewReader(b.String()))
	if err != nil || !reflect.DeepEqual(got, []Result{r}) {
		t.Errorf("%+v, %v", got, err)
	}
	if lines := strings.Split(table.String(), "\n"); len(lines) != 3 || len(lines[0]) != len(lines[1]) || !strings.HasPrefix(lines[1], "shm             2    4       4M pull        wd             2.00") {
		t.Errorf("\n%s", table.String())
	}
	for _, bad := range []string{`"from":0,"to":1`, `"from":1,"to":2,"method":"col"`, `"from":1,"to":2,"method":"col","strategy":"wd","rounds":1,"omega":-1`} {
		if _, err := Read("x", strings.NewReader(`{"bench":"redist",`+bad+`}`)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
