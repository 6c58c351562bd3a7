// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mam"
)

// clock reads times of this process as nanoseconds of CLOCK_MONOTONIC, which all processes
// of a host have in common.
type clock struct {
	at   time.Time
	nsec int64
}

func newClock() (clock, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return clock{}, err
	}
	return clock{time.Now(), t.Nano()}, nil
}

func (c clock) of(t time.Time) int64 { return c.nsec + int64(t.Sub(c.at)) }

// host tells hosts apart.
func host() (int64, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	h := fnv.New64a()
	h.Write(b)
	return int64(h.Sum64()), err
}

// interval is from when until when, in nanoseconds.
type interval struct{ start, end int64 }

// intervals are in order and do not touch each other.
type intervals []interval

// union is the intervals of all of them together.
func union(lists ...intervals) (all intervals) {
	sorted := slices.SortedFunc(slices.Values(slices.Concat(lists...)), func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	for _, i := range sorted {
		switch last := len(all) - 1; {
		case i.end <= i.start:
		case last >= 0 && i.start <= all[last].end:
			all[last].end = max(all[last].end, i.end)
		default:
			all = append(all, i)
		}
	}
	return all
}

// without is what of a is in none of b.
func (a intervals) without(b intervals) (rest intervals) {
	for _, i := range a {
		for _, j := range b {
			if j.end <= i.start || j.start >= i.end {
				continue
			}
			if j.start > i.start {
				rest = append(rest, interval{i.start, j.start})
			}
			i.start = j.end
			if i.start >= i.end {
				break
			}
		}
		if i.start < i.end {
			rest = append(rest, i)
		}
	}
	return rest
}

func (a intervals) length() (n int64) {
	for _, i := range a {
		n += i.end - i.start
	}
	return n
}

// within is the length of what of a lies in i.
func (a intervals) within(i interval) (n int64) {
	for _, j := range a {
		n += max(0, min(i.end, j.end)-max(i.start, j.start))
	}
	return n
}

// part is what one process had to do with a redistribution.
type part struct {
	came  bool // it is a newcomer
	bytes int64
	touch intervals
	move  intervals
}

// A part as numbers: ofSpans of them, then its touches and moves, each a start and an end; what
// is behind them says nothing.
const (
	ofHost = iota
	ofCame
	ofBytes
	ofTouches
	ofMoves
	ofSpans
	mostSpans = 1 << 16
)

// encode is what a process tells of a change.
func encode(c clock, t mam.Times, came bool) ([]int64, error) {
	list := make([]int64, ofSpans)
	var err error
	if list[ofHost], err = host(); err != nil {
		return nil, err
	}
	if list[ofBytes] = t.Bytes; came {
		list[ofCame] = 1
	}
	var kinds [2]intervals
	for _, s := range t.Spans {
		k := 0
		if s.Phase != mam.Touching {
			k = 1
		}
		kinds[k] = append(kinds[k], interval{c.of(s.Start), c.of(s.End)})
	}
	for k, spans := range kinds {
		spans = union(spans)
		list[ofTouches+k] = int64(len(spans))
		for _, s := range spans {
			list = append(list, s.start, s.end)
		}
	}
	return list, nil
}

var errHosts = errors.New("redist: ranks are on several hosts, whose clocks differ")

// decode is what processes have told, each in so many numbers.
func decode(all []int64, each int) ([]part, error) {
	var parts []part
	first := all[ofHost]
	for rank := 0; len(all) >= each && each >= ofSpans; rank, all = rank+1, all[each:] {
		if all[ofHost] != first {
			return nil, errHosts
		}
		p := part{came: all[ofCame] != 0, bytes: all[ofBytes]}
		spans := all[ofSpans:each]
		for k, to := range []*intervals{&p.touch, &p.move} {
			n := all[ofTouches+k]
			if n < 0 || n > mostSpans || 2*n > int64(len(spans)) {
				return nil, fmt.Errorf("redist: rank %d has told of %d spans", rank, n)
			}
			for range n {
				*to = append(*to, interval{spans[0], spans[1]})
				spans = spans[2:]
			}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// took is the time of a redistribution, in nanoseconds: all is warm and first touches
// together. from and to are when data began and ceased to move.
type took struct {
	warm, touch int64
	from, to    int64
}

// takes lays the parts of all processes beside each other. The redistribution is from the
// start of the first move to the end of the last one, but for gaps in which nobody does
// anything and newcomers have not begun yet: processes are being started; and touches
// outside of that are added. An instant is of first touch if somebody touches and the
// others do not move, where processes move by themselves (apart), or whatever the others
// do, where they move together and so wait for those that still touch.
func takes(parts []part, apart bool) (took, error) {
	var touches, moves, works []intervals
	var begun int64
	for _, p := range parts {
		work := union(p.touch, p.move)
		touches, moves, works = append(touches, p.touch), append(moves, union(p.move).without(union(p.touch))), append(works, work)
		if p.came && len(work) > 0 {
			begun = max(begun, work[0].start)
		}
	}
	var all intervals
	for _, p := range parts {
		all = union(all, p.move)
	}
	if len(all) == 0 {
		return took{}, errors.New("redist: nobody has moved anything")
	}
	t := took{from: all[0].start, to: all[len(all)-1].end}
	work := union(works...)
	gaps := intervals{{t.from, t.to}}.without(work)
	starting := gaps.within(interval{t.from, begun})
	touch := union(touches...)
	if apart {
		touch = touch.without(union(moves...))
	}
	t.touch = touch.length()
	whole := union(work, intervals{{t.from, t.to}}).length() - starting
	// Between touches before the first move and that is nothing of the redistribution.
	t.warm = whole - t.touch
	return t, nil
}

// overlapped is how many of the iterations lie between from and to, with the parts of
// those that do so in part, and how long one of them was; both 0: none does.
func overlapped(iterations []interval, from, to int64) (n, each float64) {
	inside := 0.0
	for _, i := range iterations {
		in := float64(max(0, min(to, i.end)-max(from, i.start)))
		if in > 0 {
			n += in / float64(i.end-i.start)
			inside += in
		}
	}
	if n == 0 {
		return 0, 0
	}
	return n, inside / n
}
