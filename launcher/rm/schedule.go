// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Moment is one entry of a timetable.
type Moment struct {
	At time.Duration
	By int // difference in processes
	To int // absolute number of processes, in place of By
}

// MostMoments bounds a timetable, MostProcesses its sizes.
const (
	MostMoments   = 1 << 16
	MostProcesses = 1 << 16
)

var errSchedule = errors.New("not a timetable such as 10s:+4,20s:-2,1m:=8")

// ParseSize reads a change of size: +N more, -N fewer, or =N in all, with N from 1 to
// most.
func ParseSize(text string, most int) (by, to int, ok bool) {
	if text == "" {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(text[1:], 10, 31)
	if err != nil || n == 0 || n > uint64(most) {
		return 0, 0, false
	}
	switch text[0] {
	case '+':
		return int(n), 0, true
	case '-':
		return -int(n), 0, true
	case '=':
		return 0, int(n), true
	}
	return 0, 0, false
}

// ParseSchedule reads "10s:+4,20s:-2,1m:=8": times since the start, in order; bare numbers
// are seconds.
func ParseSchedule(text string) ([]Moment, error) {
	var list []Moment
	for item := range strings.SplitSeq(text, ",") {
		at, size, ok := strings.Cut(strings.TrimSpace(item), ":")
		if !ok || len(size) < 2 || !strings.ContainsRune("+-=", rune(size[0])) {
			return nil, fmt.Errorf("%q: %w", item, errSchedule)
		}
		d, err := time.ParseDuration(at)
		if err != nil {
			var f float64
			if f, err = strconv.ParseFloat(at, 64); err == nil && !(f >= 0 && f < 1e9) {
				err = errSchedule
			}
			d = time.Duration(f * float64(time.Second))
		}
		m := Moment{At: d}
		m.By, m.To, ok = ParseSize(size, MostProcesses)
		switch {
		case err != nil || d < 0:
			return nil, fmt.Errorf("%q: %q is no time: %w", item, at, errSchedule)
		case !ok:
			return nil, fmt.Errorf("%q: %q is no size, +N, -N or =N with N from 1 to %d: %w", item, size, MostProcesses, errSchedule)
		case len(list) > 0 && d < list[len(list)-1].At:
			return nil, fmt.Errorf("%q has an earlier time than the entry before it: %w", item, errSchedule)
		case len(list) == MostMoments:
			return nil, fmt.Errorf("more than %d entries: %w", MostMoments, errSchedule)
		}
		list = append(list, m)
	}
	return list, nil
}

// Schedule is a manager that resizes the first job by a timetable. An entry that is due
// during a change waits for it, and counts from its result.
type Schedule struct {
	list  []Moment
	next  int
	began time.Duration
	now   time.Duration

	job      JobID
	known    bool
	size     int // its present size
	want     int // the size it is to have
	underWay bool
}

// NewSchedule makes a manager; times count from the arrival of its first job.
func NewSchedule(list []Moment) *Schedule { return &Schedule{list: list} }

// Step implements ResourceManager.
func (s *Schedule) Step(now time.Duration, events ...Event) []Decision {
	s.now = max(s.now, now)
	for _, ev := range events {
		switch ev := ev.(type) {
		case Arrived:
			if !s.known && ev.Job.Size > 0 {
				s.job, s.known, s.size, s.want, s.began = ev.Job.ID, true, ev.Job.Size, ev.Job.Size, s.now
			}
		case Sized:
			if s.known && ev.Job == s.job && ev.Size > 0 {
				// The present size counts, by whatever change.
				s.size, s.want, s.underWay = ev.Size, ev.Size, false
			}
		case Ended:
			if s.known && ev.Job == s.job {
				s.next, s.want = len(s.list), s.size
			}
		}
	}
	if !s.known || s.underWay {
		return nil
	}
	for s.next < len(s.list) && s.began+s.list[s.next].At <= s.now {
		m := s.list[s.next]
		if s.next++; m.To != 0 {
			s.want = m.To
		} else {
			s.want = min(max(1, s.want+m.By), MostProcesses)
		}
	}
	if s.want == s.size {
		return nil
	}
	s.underWay = true
	return []Decision{{s.job, s.want, s.size}}
}

// Next implements ResourceManager.
func (s *Schedule) Next() (time.Duration, bool) {
	if !s.known || s.underWay || s.next == len(s.list) {
		return 0, false
	}
	return s.began + s.list[s.next].At, true
}

// Done reports whether the timetable is over.
func (s *Schedule) Done() bool { return s.next == len(s.list) && !s.underWay }
