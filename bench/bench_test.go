// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSameAsC holds the C side's table against ours: names, operations of an
// iteration, whose clock, sizes, constants.
func TestSameAsC(t *testing.T) {
	src, err := os.ReadFile("peers/peer.c")
	if err != nil {
		t.Fatal(err)
	}
	constant := func(name string) int {
		m := regexp.MustCompile(`\b` + name + ` (?:= )?(\d+)`).FindSubmatch(src)
		if m == nil {
			t.Fatalf("peer.c has no constant %s", name)
		}
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	for name, want := range map[string]int{"WINDOW": window, "LEAST_BLOCKS": leastBlocks, "MAX_THREADS": MaxGoroutines, "MATRIX": matrix, "TAG": tagData, "ACK": tagAck, "OVERLAP_BLOCKS": overlapBlocks,
		"PROBE_SERIES": probeSeries, "PROBE_TRIPS": probeTrips, "TAG_NEVER": tagNever, "MOST_BLOCK": int(mostBlock / time.Millisecond)} {
		if got := constant(name); got != want {
			t.Errorf("peer.c: %s = %d, here it is %d", name, got, want)
		}
	}
	if got := constant("msec"); time.Duration(got)*time.Millisecond != DefaultTime {
		t.Errorf("peer.c: msec = %d, here it is %v", got, DefaultTime)
	}
	var names []string
	collective := regexp.MustCompile(`#define SIZES "(.*)"`).FindStringSubmatch(string(src))
	for _, m := range regexp.MustCompile(`(?m)^\t\{"(\w+)", \w+, .*, ("[^"]*"|SIZES), [A-Z |]+\},$`).FindAllStringSubmatch(string(src), -1) {
		if m[1] == "startup" || m[1] == "spawn" { // timed from outside, and by Spawn
			continue
		}
		names = append(names, m[1])
		b, ok := Find(m[1])
		if !ok {
			t.Errorf("peer.c has %q, we do not", m[1])
			continue
		}
		list := strings.Trim(m[2], `"`)
		if list == "SIZES" {
			list = collective[1]
		}
		sizes, err := ParseBytes(list)
		if err != nil {
			t.Fatal(err)
		}
		want := b.Bytes
		if want == nil {
			want = []int{0}
		}
		if !reflect.DeepEqual(sizes, want) {
			t.Errorf("%s: peer.c measures %v, we %v", m[1], sizes, want)
		}
	}
	var ours []string
	for _, b := range All() {
		ours = append(ours, b.Name)
	}
	if !reflect.DeepEqual(names, ours) {
		t.Errorf("peer.c has %v, we %v", names, ours)
	}
}

func TestParseBytes(t *testing.T) {
	got, err := ParseBytes("0,8,4K,3M,2G")
	if want := []int{0, 8, 4096, 3 << 20, 2 << 30}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", ",", "8,", "K", "-1", "+1", "1k", "4KK", "65G", "99999999999999999999", " 8"} {
		if got, err := ParseBytes(bad); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	f.Add("8,4K,64G")
	f.Add("9223372036854775807G,")
	f.Fuzz(func(t *testing.T, s string) {
		ns, err := ParseBytes(s)
		if err == nil && len(ns) != strings.Count(s, ",")+1 {
			t.Errorf("%q gave %v", s, ns)
		}
		for _, n := range ns {
			if n < 0 || n > MaxBytes {
				t.Errorf("%q gave %d", s, n)
			}
		}
	})
}

func TestSplitAndFit(t *testing.T) {
	for _, c := range []struct {
		iters        int
		took         time.Duration
		blocks, each int
	}{
		{1, 0, 1, 1}, {199, 0, 199, 1}, {200, 0, 200, 1}, {399, 0, 200, 1}, {400, time.Second, 200, 2}, {1e9, time.Second, 200, 5e6},
		{100, time.Minute, 100, 1}, {1e6, 8 * time.Second, 1000, 1000},
	} {
		if b, e := split(c.iters, c.took); b != c.blocks || e != c.each {
			t.Errorf("split(%d, %v) = %d, %d, want %d, %d", c.iters, c.took, b, e, c.blocks, c.each)
		}
	}
	for _, c := range []struct {
		n          int
		took, want time.Duration
		iters      int
	}{
		{1, time.Millisecond, 100 * time.Millisecond, 0},             // too few to say
		{1, 5 * time.Millisecond, 100 * time.Millisecond, 20},        // a twentieth
		{1000, 10 * time.Millisecond, 100 * time.Millisecond, 10000}, //
		{1, time.Second, 100 * time.Millisecond, 1},                  // never none
		{1 << 40, 0, time.Hour, 1e12},                                // a clock that stands still
	} {
		if got := fit(c.n, c.took, c.want); got != c.iters {
			t.Errorf("fit(%d, %v, %v) = %d, want %d", c.n, c.took, c.want, got, c.iters)
		}
	}
	if a := allocsPer(3, 1_000_000); a != 0 {
		t.Errorf("3 allocations in a million operations give %v", a)
	}
	if a := allocsPer(2_500, 1_000); a != 2.5 {
		t.Errorf("allocsPer(2500, 1000) = %v", a)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		bench string
		o     Options
		ranks int
		want  string // of the error
	}{
		{"latency", Options{}, 2, ""},
		{"mbw", Options{Goroutines: 4, Bytes: []int{8}}, 4, ""},
		{"latency", Options{}, 1, "gompirun -np 2 gompibench latency"},
		{"bw", Options{}, 3, "exactly 2 ranks, not 3"},
		{"mbw", Options{}, 3, "even number of ranks, not 3"},
		{"bcast", Options{Goroutines: 2}, 2, "only mbw"},
		{"mbw", Options{Goroutines: MaxGoroutines + 1}, 2, "65 goroutines"},
		{"bcast", Options{Bytes: []int{-1}}, 2, "-1 bytes"},
		{"allreduce", Options{Bytes: []int{8, 12}}, 2, "12 bytes: allreduce takes multiples of 8"},
		{"barrier", Options{Iters: -1}, 2, "-1 iterations"},
		{"barrier", Options{Time: -1}, 2, "-1ns a point"},
		{"barrier", Options{Overlap: true}, 2, "barrier is not a nonblocking collective"},
		{"get", Options{Target: Streaming, Given: true}, 2, ""},
		{"get", Options{Target: "lazy"}, 2, `target "lazy", must be computing or streaming`},
		{"bw", Options{Target: Computing}, 2, "bw does not access a target's memory"},
		{"win", Options{Given: true}, 2, "win does not access a target's memory"},
	} {
		b, ok := Find(c.bench)
		if !ok {
			t.Fatalf("no %s", c.bench)
		}
		o := c.o
		err := o.validate(&b, c.ranks)
		if c.want == "" {
			if err != nil || o.Time != DefaultTime || o.Goroutines < 1 || len(o.Bytes) == 0 {
				t.Errorf("%s %+v: got %v, %+v", c.bench, c.o, err, o)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: got %v, want %q", c.bench, c.o, err, c.want)
		}
	}
}
