// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gompi/bench/report"
)

func redistResult(from, to int, method string, msec, warm float64) string {
	return fmt.Sprintf(`echo '{"bench":"redist","transport":"shm","ranks":%d,"bytes":%d,"usec":%v,"from":%d,"to":%d,"method":"%s",`+
		`"strategy":"blocking","rounds":5,"msec":%v,"warm_msec":%v}'`+"\n", from, redistMiB<<20, 1e3*msec, from, to, method, msec, warm)
}

// Of each implementation the best method counts, cold and warm; a peer's job has as many
// ranks as there are before or after, gompi's those before.
func TestRedist(t *testing.T) {
	is := func(ranks int, name string) string {
		return fmt.Sprintf(`test "$1 $2 $3" = "%d %s redist" || exit 1`+"\n", ranks, name)
	}
	impls := []impl{
		sh(t, ours, is(2, "bench")+redistResult(2, 4, "col", 90, 20)+redistResult(2, 4, "pull", 40, 30)),
		sh(t, "peer", is(4, "program")+redistResult(2, 4, "col", 100, 40)+redistResult(2, 4, "rma-lock", 120, 10)),
		sh(t, "other", is(4, "program")+redistResult(4, 2, "col", 1, 1)),
		sh(t, "none", is(4, "program")),
	}
	for i := range impls {
		impls[i].redist = "program"
	}
	impls[0].redist = "bench"
	jobs, err := pick(jobs(), "redist-2-4")
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	var raw bytes.Buffer
	s := session{opt: options{rounds: 1, timeout: time.Minute}, impls: impls, board: newBoard(), raw: &raw}
	if err := s.measure(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	tab := s.board.table(jobs, impls)
	if len(tab.rows) != 2 {
		t.Fatalf("%+v", tab.rows)
	}
	for i, want := range []string{
		"256 MiB redist, 2 to 4 ranks, cold, the best method of each|40.0 ms|100 ms|fails|fails|0.40|<= 0.50|pass|1.00|0",
		"256 MiB redist, 2 to 4 ranks, warm, the best method of each|20.0 ms|10.0 ms|fails|fails|2.00|<= 0.80|miss|1.00|0",
	} {
		if got := strings.Join(tab.fields(tab.rows[i]), "|"); got != want {
			t.Errorf("row %d:\n%s\n%s", i, got, want)
		}
	}
	rs, err := report.Read("raw", &raw)
	if err != nil || len(rs) != 5 || rs[0].Transport != "gompi/shm" || rs[0].Redist.Method != "col" {
		t.Errorf("raw: %d results, %v", len(rs), err)
	}
	if args := strings.Join(jobs[0].args(1), " "); !strings.Contains(args, "--from 2 --to 4 --mib 256 --strategies blocking --rounds 5") {
		t.Errorf("arguments %s", args)
	}
}

// Redistributions are many and long: only who names them gets them.
func TestRedistOnlyIfNamed(t *testing.T) {
	some, err := pick(jobs(), "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pick(jobs(), redistribution)
	if err != nil || len(all) != 12 {
		t.Fatalf("%d jobs, %v", len(all), err)
	}
	for _, j := range some {
		if j.redist() {
			t.Errorf("%s runs unasked", j.name())
		}
	}
}

// TestRedistPeers redistributes with the MPIs that are installed.
func TestRedistPeers(t *testing.T) {
	if os.Getenv("GOMPI_TEST") != "long" {
		t.Skip("runs other MPIs: GOMPI_TEST=long")
	}
	peers := installed()
	for name := range peers {
		t.Run(name, func(t *testing.T) {
			m, err := prepare(t.Context(), peers, name, t.TempDir(), false, true)
			if err != nil {
				t.Skip(err)
			}
			s := session{opt: options{rounds: 1, timeout: 20 * time.Second}, impls: []impl{m}, board: newBoard()}
			for _, words := range []string{"redist-1-2", "redist-4-2"} {
				list, err := pick(jobs(), words)
				if err != nil {
					t.Fatal(err)
				}
				rs, err := s.one(t.Context(), m, list[0])
				if rows, err := list[0].redistRows(rs, err); err != nil || len(rs) != 3 || len(rows) != 2 {
					t.Errorf("%s: %+v, %v", words, rs, err)
				}
			}
		})
	}
}
