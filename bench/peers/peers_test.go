// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/bench/report"
)

// sh makes an implementation out of a shell script, which gets the number of
// ranks and then the program's arguments.
func sh(t *testing.T, name, script string) impl {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return impl{name: name, version: name + " 1.0", bench: "bench", empty: "empty", launch: func(transport string, n int) ([]string, []string) {
		return []string{path, fmt.Sprint(n)}, []string{"T=" + transport}
	}}
}

func result(bytes int, usec string) string {
	return fmt.Sprintf(`echo '{"bench":"latency","transport":"shm","ranks":2,"bytes":%d,"usec":%s}'`+"\n", bytes, usec)
}

func TestSession(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	impls := []impl{
		sh(t, "gompi", result(8, "0.5")+result(4096, "3")),
		sh(t, "fast", result(8, "1")+result(4096, "2.5")),
		sh(t, "slow", result(8, "2")+result(4096, "4")),
		sh(t, "bad", "echo out of luck >&2; echo x >>"+count+"; exit 3"),
		sh(t, "short", result(8, "1")),
		sh(t, "other", result(4096, "1")+result(8, "1")),
	}
	j := job{p2p, "latency", "shm", 2, []int64{8, 4096}, []float64{0.5, 1.0}, nil}
	var raw bytes.Buffer
	s := session{opt: options{rounds: 3, msec: 1, timeout: time.Minute}, impls: impls, board: newBoard(), raw: &raw}
	if err := s.measure(t.Context(), []job{j}); err != nil {
		t.Fatal(err)
	}
	tab := s.board.table([]job{j}, impls)
	if len(tab.rows) != 2 {
		t.Fatalf("rows %+v", tab.rows)
	}
	for i, want := range []struct {
		ratio   float64
		best    string
		verdict string
		fields  string
	}{
		{0.5, "fast", "pass", "8 B latency, shm, 2 ranks|0.500|1.00|2.00|fails|fails|fails|0.50|<= 0.50|pass|1.00|0"},
		{1.2, "fast", "miss", "4 KiB latency, shm, 2 ranks|3.00|2.50|4.00|fails|fails|fails|1.20|<= 1.00|miss|1.00|0"},
	} {
		r := tab.rows[i]
		if r.ratio != want.ratio || r.best != want.best || r.verdict() != want.verdict {
			t.Errorf("row %d: %+v, want %+v", i, r, want)
		}
		if got := strings.Join(tab.fields(r), "|"); got != want.fields {
			t.Errorf("row %d:\n%s\n%s", i, got, want.fields)
		}
	}
	notes := strings.Join(tab.notes, "\n")
	for _, want := range []string{"bad latency-shm-2: exit status 3: out of luck", "short latency-shm-2: 1 results instead of 2", "other latency-shm-2: result 0 is"} {
		if strings.Count(notes, want) != 1 {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	if b, _ := os.ReadFile(count); string(b) != "x\nx\n" {
		t.Errorf("a failing peer ran %d times, want %d", bytes.Count(b, []byte("x")), giveUp)
	}
	rs, err := report.Read("raw", &raw)
	if err != nil || len(rs) != 3*3*2 || rs[0].Transport != "gompi/shm" {
		t.Errorf("raw: %d results, %v", len(rs), err)
	}

	var text, md strings.Builder
	if err := tab.text(&text); err != nil || !strings.Contains(text.String(), "1 of 2 goals reached; compared with fast (fast 1.0) and slow (slow 1.0)") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := tab.markdown(&md, "a machine", s.opt); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Measured on a machine against fast (fast 1.0) and slow (slow 1.0)",
		"| 8 B latency, shm, 2 ranks | 0.500 | 1.00 |",
		"| <= 1.00 | **miss** |",
		"\n- bad latency-shm-2: exit status 3",
		"\n\n### p2p\n\n| work",
	} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("no %q in\n%s", want, md.String())
		}
	}
	columns := -1
	for l := range strings.Lines(md.String()) {
		if n := strings.Count(l, "|"); n > 0 {
			if columns >= 0 && n != columns {
				t.Errorf("%d columns instead of %d: %s", n, columns, l)
			}
			columns = n
		}
	}
}

// TestStates: two ranks' blocks are told apart by the probes of all implementations, rounds
// go on until each has enough of both, and a number of too few is marked and not compared.
func TestStates(t *testing.T) {
	// A script measures near in its first round, and far in the others: few blocks, or many.
	batches := func(n int, usec, probe string) string {
		return strings.TrimSuffix(strings.Repeat("["+usec+","+probe+","+probe+"],", n), ",")
	}
	program := func(name string, near, far string, each int) impl {
		return sh(t, name, fmt.Sprintf(`echo x >>%s; n=$(wc -l <%[1]s)
if [ $n -gt 1 ]; then b='%s'; else b='%s'; fi
echo '{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":1,"batches":['"$b"']}'
`, filepath.Join(t.TempDir(), "count"), batches(each, far, "310"), batches(20, near, "55")))
	}
	j := job{p2p, "latency", "shm", 2, []int64{8}, nil, nil}
	var impls []impl
	board := func(rounds int, until time.Duration) table {
		impls = []impl{program("gompi", "0.5", "1.2", 4), program("peer", "1", "2", 20), program("rare", "0.9", "1.5", 1)}
		s := session{opt: options{rounds: rounds, untilBoth: until, msec: 1, timeout: time.Minute}, impls: impls, board: newBoard()}
		if err := s.measure(t.Context(), []job{j}); err != nil {
			t.Fatal(err)
		}
		return s.board.table([]job{j}, impls)
	}
	if tab := board(1, 0); tab.states != nil {
		t.Errorf("one state of the machine gave %+v", tab.states)
	}
	tab := board(1, time.Hour)
	if len(tab.states) != 2 {
		t.Fatalf("states %+v", tab.states)
	}
	for i, want := range []string{
		"8 B latency, shm, 2 ranks|0.500|1.00|0.900|0.56|<= 0.60|pass|20",
		"8 B latency, shm, 2 ranks|1.20|2.00|1.50|0.80|<= 0.65|miss|10", // rounds until the rarest has enough
	} {
		if got := strings.Join(tab.stateFields(tab.states[i].rows[0]), "|"); got != want {
			t.Errorf("%s:\n%s\n%s", tab.states[i].name, got, want)
		}
	}
	if pass, of := tab.score(); pass != 1 || of != 2 {
		t.Errorf("%d of %d", pass, of)
	}
	var text, md strings.Builder
	if err := errors.Join(tab.text(&text), tab.markdown(&md, "a machine", options{rounds: 1})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nnear: a line of memory goes there and back in 55.0 ns\n", "\nfar: a line of memory goes there and back in 310 ns\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if !strings.Contains(md.String(), "### far: a line") || !strings.Contains(md.String(), "| 0.80 | <= 0.65 | **miss** | 10 |") {
		t.Errorf("%s", md.String())
	}
	// Without further rounds two have too little: theirs is no ratio.
	far := board(2, 0).states[1].rows[0]
	if got := strings.Join(tab.stateFields(far), "|"); got != "8 B latency, shm, 2 ranks|1.20 (of 4)|2.00|1.50 (of 1)|-|<= 0.65||1" {
		t.Error(got)
	}
}

func TestStartupIsTimedFromOutside(t *testing.T) {
	m := sh(t, "gompi", `test "$1 $2 $3" = "7 empty startup" || exit 1`)
	m.emptyIs = []string{startup}
	s := session{opt: options{timeout: time.Minute}, impls: []impl{m}, board: newBoard()}
	rs, err := s.one(t.Context(), m, job{bench: startup, transport: "shm", ranks: 7})
	if err != nil || len(rs) != 1 || rs[0].Usec <= 0 || rs[0].Ranks != 7 {
		t.Fatalf("%+v, %v", rs, err)
	}
	s.board.add("gompi", report.Result{Bench: startup, Transport: "shm", Ranks: 7, Usec: 12345})
	r := s.board.table([]job{{bench: startup, transport: "shm", ranks: 7}}, s.impls).rows[0]
	if r.number(r.cells[0]) != "12.3 ms" || r.work() != "start and stop of 7 empty ranks" || r.verdict() != "" {
		t.Errorf("%+v", r)
	}
}

// TestHang: a job that hangs is stopped with all its processes, and reported.
func TestHang(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	m := sh(t, "hang", "sleep 1000 & echo $! >"+pid+"; wait")
	j := job{bench: "barrier", transport: "shm", ranks: 2}
	s := session{opt: options{rounds: 1, timeout: 500 * time.Millisecond}, impls: []impl{m}, board: newBoard()}
	if err := s.measure(t.Context(), []job{j}); err != nil {
		t.Fatal(err)
	}
	if e := s.board.failed["hang barrier-shm-2"]; len(e) != 1 || !errors.Is(e[0], errHung) {
		t.Errorf("failures %v", e)
	}
	if r := s.board.table([]job{j}, s.impls).rows[0]; r.number(r.cells[0]) != "hangs" {
		t.Errorf("%+v", r)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	// SIGKILL is delivered when kill returns, but the process may still be
	// ending, and nobody may reap it: a zombie is gone as well.
	deadline := time.Now().Add(10 * time.Second)
	for {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the job's process is still there: %s", stat)
		}
	}
}

func TestOverlapIsShown(t *testing.T) {
	j := job{nonblocking, "ialltoallv", "shm", 2, []int64{8}, nil, nil}
	if args := strings.Join(j.args(5), " "); !strings.HasSuffix(args, " --overlap") {
		t.Errorf("args %s", args)
	}
	b := newBoard()
	for _, percent := range []float64{70, 90, 80} {
		b.add("gompi", report.Result{Bench: j.bench, Transport: j.transport, Ranks: 2, Bytes: 8, Usec: 5, Overlap: &percent})
	}
	r := b.table([]job{j}, []impl{{name: "gompi"}}).rows[0]
	if r.number(r.cells[0]) != "5.00 (80 %)" || r.work() != "8 B ialltoallv, shm, 2 ranks (overlapped)" {
		t.Errorf("%s, %s", r.number(r.cells[0]), r.work())
	}
}

// TestSlow: of a job that is stopped the points before count.
func TestSlow(t *testing.T) {
	m := sh(t, "slow", result(8, "2")+"echo -n '{\"bench\":'; exec sleep 1000")
	j := job{p2p, "latency", "shm", 2, []int64{8, 4096}, nil, nil}
	s := session{opt: options{rounds: 1, timeout: 500 * time.Millisecond}, impls: []impl{m}, board: newBoard()}
	if err := s.measure(t.Context(), []job{j}); err != nil {
		t.Fatal(err)
	}
	tab := s.board.table([]job{j}, s.impls)
	if a, b := tab.rows[0], tab.rows[1]; a.number(a.cells[0]) != "2.00" || b.number(b.cells[0]) != "slow" {
		t.Errorf("%+v", tab.rows)
	}
	if n := strings.Join(tab.notes, "\n"); !strings.Contains(n, "1 of 2 points measured") {
		t.Errorf("notes: %s", n)
	}
}

func TestPick(t *testing.T) {
	names := func(words string) string {
		list, err := pick(jobs(), words)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, j := range list {
			all = append(all, j.name())
		}
		return strings.Join(all, " ")
	}
	for words, want := range map[string]string{
		"reduce":               "reduce-shm-2 reduce-shm-4 reduce-shm-8",
		"startup,barrier-shm-": "barrier-shm-2 barrier-shm-4 barrier-shm-8 startup-shm-2 startup-shm-28 startup-shm-64",
		"scan-shm-2":           "scan-shm-2",
		"column,-tcp-":         "latency-tcp-2 bw-tcp-2 column-shm-2",
		"scan,nosuch":          "--jobs: no job is called \"nosuch\"; `--jobs list` prints them",
	} {
		if got := names(words); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
	all := names("")
	if got := names("p2p,collectives,neighbors,nonblocking,one-sided,startup,spawn"); got != all || strings.Count(all, " ") < 60 {
		t.Errorf("all groups are %s, all jobs %s", got, all)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := session{opt: options{rounds: 1, timeout: time.Minute}, impls: []impl{sh(t, "x", "sleep 1000")}, board: newBoard()}
	if err := s.measure(ctx, jobs()[:1]); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	_, err := runLimited(t.Context(), []string{"head", "-c", fmt.Sprint(maxOutput + 1), "/dev/zero"}, nil, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

func TestJobs(t *testing.T) {
	seen := map[string]bool{}
	for _, j := range jobs() {
		if seen[j.name()] {
			t.Errorf("%s stands twice: --jobs and failures are by name", j.name())
		}
		seen[j.name()] = true
		if len(j.goals) > len(j.points()) {
			t.Errorf("%s: %d goals for %d points", j.name(), len(j.goals), len(j.points()))
		}
	}
	got := strings.Join(job{p2p, "latency", "tcp", 2, []int64{8, 4 << 20}, nil, nil}.args(50), " ")
	if want := "latency --json --transport tcp --msec 50 --bytes 8,4194304 --batches"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A further peer is built and run by the commands that were given: here by shell
// scripts, whose programs lie in another root, as a chroot's do.
func TestFurtherPeer(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cc := script("cc", `test "$1" = new && grep -q MPI_Init "$2" && mkdir -p `+root+`/tmp && printf '#!/bin/sh\n`+
		`if [ "$1" = version ]; then echo "New  MPI 9, built today"; else echo %s; fi\n' "$1" >`+root+`"$3"`)
	run := script("run", `test "$1 $2 $3" = "new -np 1" || test "$OMPI_MCA_btl" = tcp,self || exit 7; p=$4; shift 4; sh `+root+`$p "$@"`)
	peers, names, err := withFurther([]string{"new=" + cc + " new," + run + " new"})
	if err != nil || len(names) != 1 || len(peers) != 3 {
		t.Fatalf("%v, %v, %v", peers, names, err)
	}
	m, err := prepare(t.Context(), peers, "new", t.TempDir(), false, false)
	if err != nil || m.version != "New MPI 9, built today" {
		t.Fatalf("version %q, %v", m.version, err)
	}
	argv, env := m.launch("tcp", 4)
	if out, err := runLimited(t.Context(), append(argv, m.bench, "latency"), env, time.Minute); err != nil || string(out) != "new\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := prepare(t.Context(), peers, "newer", t.TempDir(), false, false); err == nil || !strings.Contains(err.Error(), "gompi, mpich, new, openmpi") {
		t.Errorf("a name that is not there: %v", err)
	}
	for arg, want := range map[string]string{
		"x":            "want NAME=COMPILE,RUN",
		"x=cc":         "want NAME=COMPILE,RUN",
		"=cc,run":      "want NAME=COMPILE,RUN",
		"a/b=cc,run":   "want NAME=COMPILE,RUN",
		"mpich=cc,run": "of that name",
		"gompi=cc,run": "of that name",
	} {
		if _, _, err := withFurther([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	peers, _, _ = withFurther([]string{"bad=/no/such/cc,sh", "mute=true,true"})
	for name, want := range map[string]string{"bad": "--peer bad: ", "mute": "mute: true -np 1: the program has said nothing"} {
		if _, err := prepare(t.Context(), peers, name, t.TempDir(), false, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestPeers builds and runs every C loop with the MPIs that are installed.
func TestPeers(t *testing.T) {
	if os.Getenv("GOMPI_TEST") != "long" {
		t.Skip("runs other MPIs: GOMPI_TEST=long")
	}
	peers := installed()
	for name := range peers {
		t.Run(name, func(t *testing.T) {
			m, err := prepare(t.Context(), peers, name, t.TempDir(), false, false)
			if err != nil {
				t.Skip(err)
			}
			s := session{opt: options{rounds: 1, msec: 1, timeout: 20 * time.Second}, impls: []impl{m}, board: newBoard()}
			for _, bench := range []string{"latency", "bw", "bibw", "mbw", "column", "barrier", "allreduce", "bcast", startup, spawning} {
				j := job{bench: bench, transport: "shm", ranks: 2}
				if bench != "barrier" && bench != startup && bench != spawning {
					j.bytes = []int64{8, 1 << 16}
				}
				if bench == "column" {
					j.bytes = []int64{1 << 15, 1 << 16}
				}
				rs, err := s.one(t.Context(), m, j)
				if errors.Is(err, errHung) {
					t.Logf("%s: %v (a peer that spins on a busy machine is not our mistake)", j.name(), err)
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", j.name(), err)
				}
				for _, r := range rs {
					if r.Usec <= 0 {
						t.Errorf("%s: %+v", j.name(), r)
					}
				}
			}
		})
	}
}

func TestRatioComparesRounds(t *testing.T) {
	// The machine was slow in one round of each.
	if r := ratioOf([]float64{1, 10, 1}, []float64{2, 2, 20}); r != 0.5 {
		t.Errorf("ratio %v, want 0.5", r)
	}
	if r := ratioOf([]float64{1, 3, 2}, []float64{4, 4}); r != 0.5 {
		t.Errorf("with a failed round: ratio %v, want 0.5", r)
	}
	if r := ratioOf(nil, []float64{4}); !math.IsNaN(r) {
		t.Errorf("without numbers: ratio %v", r)
	}
}
