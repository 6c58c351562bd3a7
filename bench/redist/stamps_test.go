// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	"gompi/mam"
)

// Sets of instants are what their intervals say: against a list of booleans.
func TestIntervals(t *testing.T) {
	const most = 40
	r := rand.New(rand.NewSource(1))
	random := func() (list intervals) {
		for range r.Intn(6) {
			start := int64(r.Intn(most))
			list = append(list, interval{start, start + int64(r.Intn(most-int(start)))})
		}
		return list
	}
	dots := func(list intervals) (in [most]bool) {
		for _, i := range list {
			for k := i.start; k < i.end; k++ {
				in[k] = true
			}
		}
		return in
	}
	for range 20000 {
		a, b := random(), random()
		ua, ub := union(a), union(b)
		da, db := dots(a), dots(b)
		both, only, inside, of := da, da, int64(0), interval{int64(r.Intn(most)), int64(r.Intn(most))}
		for k := range most {
			both[k], only[k] = da[k] || db[k], da[k] && !db[k]
			if da[k] && of.start <= int64(k) && int64(k) < of.end {
				inside++
			}
		}
		if u := union(a, b); dots(u) != both || dots(ua.without(ub)) != only || ua.within(of) != inside {
			t.Fatalf("%v and %v: %v, %v, %d within %v", a, b, u, ua.without(ub), ua.within(of), of)
		}
		n := int64(0)
		for _, in := range both {
			if in {
				n++
			}
		}
		u := union(a, b)
		if u.length() != n {
			t.Fatalf("%v has %d", u, u.length())
		}
		for i := 1; i < len(u); i++ {
			if u[i].start <= u[i-1].end {
				t.Fatalf("%v touch each other", u)
			}
		}
	}
}

func TestTakes(t *testing.T) {
	for name, c := range map[string]struct {
		parts []part
		apart bool
		want  took
	}{
		// All wait for one who touches; a newcomer has touched long before.
		"together": {[]part{
			{touch: intervals{{100, 130}}, move: intervals{{100, 150}}},
			{move: intervals{{101, 150}}},
			{came: true, touch: intervals{{20, 45}}, move: intervals{{102, 152}}},
		}, false, took{warm: 22, touch: 30 + 25, from: 100, to: 152}},
		// Who touches while another one reads does not make it colder.
		"apart": {[]part{
			{came: true, touch: intervals{{100, 130}}, move: intervals{{130, 160}}},
			{came: true, touch: intervals{{110, 140}}, move: intervals{{140, 170}}},
			{touch: intervals{{180, 190}}, move: intervals{{175, 200}}},
		}, true, took{warm: 40 + 5 + 5 + 10, touch: 30 + 10, from: 130, to: 200}},
		// One reads before the other one is there: between, processes are started; later
		// gaps count.
		"starting": {[]part{
			{came: true, move: intervals{{100, 110}}},
			{came: true, move: intervals{{150, 160}}},
			{move: intervals{{170, 180}}},
			{},
		}, true, took{warm: 40, touch: 0, from: 100, to: 180}},
	} {
		got, err := takes(c.parts, c.apart)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	if _, err := takes([]part{{touch: intervals{{1, 2}}}}, true); err == nil {
		t.Error("a redistribution in which nobody moves has a time")
	}
}

func TestOverlapped(t *testing.T) {
	list := []interval{{0, 10}, {10, 20}, {20, 40}, {40, 80}, {80, 90}}
	for _, c := range []struct{ from, to, n, each float64 }{
		{10, 40, 2, 15},
		{15, 30, 1, 15},
		{30, 50, 0.75, 80. / 3},
		{90, 100, 0, 0},
		{85, 100, 0.5, 10},
	} {
		if n, each := overlapped(list, int64(c.from), int64(c.to)); n != c.n || each != c.each {
			t.Errorf("%v to %v: %v iterations of %v", c.from, c.to, n, each)
		}
	}
}

// What a process tells comes over as it was.
func TestParts(t *testing.T) {
	c, err := newClock()
	if err != nil {
		t.Fatal(err)
	}
	at := func(n int) time.Time { return c.at.Add(time.Duration(n)) }
	times := mam.Times{Bytes: 7, Spans: []mam.Span{
		{Phase: mam.Touching, Start: at(-5), End: at(5)}, {Phase: mam.Background, Start: at(-5), End: at(20)}, {Phase: mam.AtCommit, Start: at(30), End: at(40)},
	}}
	a, err := encode(c, times, true)
	if err != nil {
		t.Fatal(err)
	}
	b, err := encode(c, mam.Times{}, false)
	if err != nil {
		t.Fatal(err)
	}
	each := max(len(a), len(b)) + 3
	lay := func(lists ...[]int64) (all []int64) {
		for _, l := range lists {
			all = append(append(all, l...), make([]int64, each-len(l))...)
		}
		return all
	}
	got, err := decode(lay(a, b), each)
	want := []part{{true, 7, intervals{{c.nsec - 5, c.nsec + 5}}, intervals{{c.nsec - 5, c.nsec + 20}, {c.nsec + 30, c.nsec + 40}}}, {}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	b[ofHost]++
	if _, err := decode(lay(a, b), each); err != errHosts {
		t.Errorf("two hosts: %v", err)
	}
	a[ofMoves] = 9
	if _, err := decode(lay(a), each); err == nil || !strings.Contains(err.Error(), "9 spans") {
		t.Errorf("9 spans: %v", err)
	}
}
