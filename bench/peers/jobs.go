// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// job is one start of a benchmark program; it yields one point for each size.
type job struct {
	bench     string
	transport string // "shm" or "tcp"
	ranks     int
	bytes     []int64 // nil: the benchmark has no sizes
	// goals[i] is the ratio to the best peer that DESIGN section 5 asks for
	// at bytes[i] (at the only point if bytes is nil); 0 means none.
	goals []float64
}

const startup = "startup" // wall time of a job of empty ranks, measured here

var jobs = []job{
	{"latency", "shm", 2, []int64{8, 4 << 10, 64 << 10, 4 << 20}, []float64{0.8, 0.4, 0.6, 0.5}},
	{"latency", "tcp", 2, []int64{8, 4 << 20}, []float64{1.0, 0.8}},
	{"bw", "shm", 2, []int64{8, 4 << 10, 64 << 10, 4 << 20}, nil},
	{"bibw", "shm", 2, []int64{4 << 10, 4 << 20}, nil},
	{"mbw", "shm", 4, []int64{8, 64 << 10}, nil},
	{"column", "shm", 2, []int64{32 << 10, 256 << 10, 4 << 20}, []float64{1.0, 1.0, 1.0}},
	{"bw", "tcp", 2, []int64{8, 64 << 10, 4 << 20}, nil},
	{"barrier", "shm", 2, nil, []float64{0.8}},
	{"barrier", "shm", 4, nil, []float64{0.8}},
	{"barrier", "shm", 8, nil, []float64{0.8}},
	{"allreduce", "shm", 2, []int64{8}, []float64{0.8}},
	{"allreduce", "shm", 4, []int64{8}, []float64{0.8}},
	{"allreduce", "shm", 8, []int64{8}, []float64{0.8}},
	{"bcast", "shm", 2, []int64{8, 64 << 10, 1 << 20}, nil},
	{"bcast", "shm", 4, []int64{8, 64 << 10, 1 << 20}, nil},
	{"bcast", "shm", 8, []int64{8, 64 << 10, 1 << 20}, nil},
	{startup, "shm", 2, nil, []float64{1.0}},
	{startup, "shm", 28, nil, []float64{0.5}},
	{startup, "shm", 64, nil, []float64{0.5}},
}

func (j job) name() string { return fmt.Sprintf("%s-%s-%d", j.bench, j.transport, j.ranks) }

// points are the rows of the table that the job fills.
func (j job) points() []point {
	sizes := j.bytes
	if sizes == nil {
		sizes = []int64{0}
	}
	ps := make([]point, len(sizes))
	for i, n := range sizes {
		ps[i] = point{j.bench, j.transport, j.ranks, n}
	}
	return ps
}

func (j job) goal(i int) float64 {
	if i < len(j.goals) {
		return j.goals[i]
	}
	return 0
}

// args are those of gompibench and of peer.c alike.
func (j job) args(msec int) []string {
	a := []string{j.bench, "--json", "--transport", j.transport, "--msec", strconv.Itoa(msec)}
	if j.bytes != nil {
		sizes := make([]string, len(j.bytes))
		for i, n := range j.bytes {
			sizes[i] = strconv.FormatInt(n, 10)
		}
		a = append(a, "--bytes", strings.Join(sizes, ","))
	}
	return a
}

// limit is when the job counts as hanging. A point takes its time twice at
// most (calibration), and a slow barrier may make that several times more.
func (j job) limit(o options) time.Duration {
	return o.timeout + 4*time.Duration(len(j.points()))*time.Duration(o.msec)*time.Millisecond
}

// point names a row.
type point struct {
	bench, transport string
	ranks            int
	bytes            int64
}
