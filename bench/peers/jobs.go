// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// job is one start of a benchmark program; it yields one point for each size.
type job struct {
	group     string
	bench     string
	transport string // "shm" or "tcp"
	ranks     int
	bytes     []int64 // nil: the benchmark has no sizes
	// goals[i] is the ratio to the best peer that DESIGN section 5 asks for
	// at bytes[i] (at the only point if bytes is nil); 0 means none.
	goals []float64
	// change is from how many ranks to how many data is redistributed; nil: it is not.
	change *change
}

// Groups of jobs.
const (
	p2p         = "p2p"
	collectives = "collectives"
	neighbors   = "neighbors"
	nonblocking = "nonblocking" // with their overlap
	oneSided    = "one-sided"
	startup     = "startup" // wall time of a job of empty ranks, measured here
	spawning    = "spawn"   // ranks are the processes that one rank spawns

	redistribution = "redist" // of data, between numbers of ranks
)

// jobs are all jobs; those of one benchmark follow each other.
func jobs() []job {
	list := []job{
		{p2p, "latency", "shm", 2, []int64{8, 512, 4 << 10, 16 << 10, 64 << 10, 4 << 20}, []float64{0.8, 0, 0.4, 0, 0.6, 0.5}, nil},
		{p2p, "latency", "tcp", 2, []int64{8, 4 << 20}, []float64{1.0, 0.8}, nil},
		{p2p, "echo", "shm", 2, []int64{8, 4 << 10, 64 << 10, 256 << 10, 4 << 20}, nil, nil},
		{p2p, "bw", "shm", 2, []int64{8, 4 << 10, 64 << 10, 4 << 20}, nil, nil},
		{p2p, "bw", "tcp", 2, []int64{8, 64 << 10, 4 << 20}, nil, nil},
		{p2p, "bibw", "shm", 2, []int64{4 << 10, 4 << 20}, nil, nil},
		{p2p, "mbw", "shm", 4, []int64{8, 64 << 10}, nil, nil},
		{p2p, "column", "shm", 2, []int64{32 << 10, 256 << 10, 4 << 20, 32 << 20}, []float64{1.0, 1.0, 1.0, 1.0}, nil},
		{collectives, "blocks", "shm", 2, []int64{32 << 10, 512 << 10, 8 << 20, 32 << 20}, nil, nil},
		{collectives, "blocks", "shm", 4, []int64{32 << 10, 512 << 10, 8 << 20, 32 << 20}, nil, nil},
	}
	for _, ranks := range []int{2, 4, 8} {
		list = append(list, job{collectives, "barrier", "shm", ranks, nil, []float64{0.8}, nil})
	}
	for _, bench := range []string{
		"bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
		"alltoall", "alltoallv", "reduce_scatter_block", "reduce_scatter", "scan", "exscan",
	} {
		list = append(list, collective(collectives, bench)...)
	}
	for _, bench := range []string{"neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv"} {
		list = append(list, collective(neighbors, bench)...)
	}
	for _, bench := range []string{"ialltoallv", "iallreduce", "ibcast"} {
		for _, ranks := range []int{2, 4} {
			list = append(list, job{nonblocking, bench, "shm", ranks, []int64{256 << 10, 4 << 20}, nil, nil})
		}
	}
	for _, bench := range []string{"put", "get", "acc", "getacc"} {
		goals := []float64{1.0, 0, 0, 0}
		if bench == "get" {
			goals[3] = 0.6
		}
		list = append(list, job{oneSided, bench, "shm", 2, collectiveBytes, goals, nil})
	}
	list = append(list,
		job{oneSided, "fao", "shm", 2, []int64{8}, []float64{1.0}, nil},
		job{oneSided, "cas", "shm", 2, []int64{8}, []float64{1.0}, nil},
		job{oneSided, "win", "shm", 2, []int64{8, 4 << 20}, []float64{0.5, 0.5}, nil},
		job{oneSided, "win", "shm", 8, []int64{8, 4 << 20}, []float64{0.2, 0.2}, nil},
		job{oneSided, "win", "shm", 28, []int64{8, 4 << 20}, []float64{0.2, 0.2}, nil},
		job{oneSided, "winalloc", "shm", 2, []int64{8, 64 << 10, 4 << 20}, nil, nil})
	list = append(list,
		job{startup, startup, "shm", 2, nil, []float64{1.0}, nil},
		job{startup, startup, "shm", 28, nil, []float64{0.5}, nil},
		job{startup, startup, "shm", 64, nil, []float64{0.5}, nil},
		job{spawning, spawning, "shm", 28, nil, []float64{0.03}, nil},
		job{spawning, spawning, "shm", 84, nil, []float64{0.012}, nil})
	return append(list, redistJobs()...)
}

// stateGoals are the ratios to the best peer that DESIGN section 5 asks for where the
// processors of two ranks share a cache, and where they do not.
var stateGoals = map[point][2]float64{
	{"latency", "shm", 2, 8}:          {0.6, 0.65},
	{"latency", "shm", 2, 512}:        {0.9, 0.85},
	{"latency", "shm", 2, 4 << 10}:    {0.9, 0.55},
	{"latency", "shm", 2, 16 << 10}:   {0.65, 0.6},
	{"latency", "shm", 2, 64 << 10}:   {0.65, 0.8},
	{"latency", "shm", 2, 4 << 20}:    {0.5, 0.5},
	{"bcast", "shm", 2, 8}:            {0.8, 0.9},
	{"bcast", "shm", 2, 16 << 10}:     {0.7, 0.7},
	{"reduce", "shm", 2, 4 << 20}:     {0.8, 0.9},
	{"allreduce", "shm", 2, 4 << 20}:  {0.6, 0.7},
	{"allgather", "shm", 2, 8}:        {0.8, 0.8},
	{"allgather", "shm", 2, 16 << 10}: {0.8, 0.7},
	{"alltoallv", "shm", 2, 64}:       {0.9, 0.9},
	{"alltoallv", "shm", 2, 4 << 10}:  {0.8, 0.8},
	{"barrier", "shm", 2, 0}:          {0.6, 0.6},
	{"allreduce", "shm", 2, 8}:        {0.7, 0.7},
	{"latency", "tcp", 2, 8}:          {1.0, 0.9},
	{"latency", "tcp", 2, 4 << 20}:    {0.7, 0.8},
}

// collectiveBytes are those at which every collective has a goal.
var collectiveBytes = []int64{8, 4 << 10, 256 << 10, 4 << 20}

// collective makes the jobs of one collective: no slower than the best peer on
// 2 ranks, faster on more; some have goals of their own.
func collective(group, bench string) []job {
	var list []job
	for _, ranks := range []int{2, 4, 8} {
		usual := 0.8
		if ranks == 2 {
			usual = 1.0
		}
		sizes, goals := collectiveBytes, slices.Repeat([]float64{usual}, len(collectiveBytes))
		switch bench {
		case "allreduce":
			goals[0] = 0.8
		case "alltoallv":
			goals[len(goals)-1] = 0.6
		}
		also := func(bytes int64, goal float64) {
			if at, found := slices.BinarySearch(sizes, bytes); !found {
				sizes, goals = slices.Insert(slices.Clone(sizes), at, bytes), slices.Insert(goals, at, goal)
			}
		}
		for p := range stateGoals {
			if p.bench == bench && p.ranks == ranks && p.bytes > 0 {
				also(p.bytes, 0)
			}
		}
		if bench == "alltoallv" && ranks == 8 {
			also(64<<10, 0.9)
		}
		list = append(list, job{group, bench, "shm", ranks, sizes, goals, nil})
	}
	return list
}

// pick finds the jobs that a list names: each word is a group, a benchmark or a
// job, or else part of the names of jobs. An empty list names all that are not
// onlyIfNamed.
func pick(all []job, words string) ([]job, error) {
	if words == "" {
		return usual(all), nil
	}
	taken := map[string]bool{}
	for word := range strings.SplitSeq(words, ",") {
		found := false
		for _, is := range []func(j job) bool{
			func(j job) bool { return j.group == word || j.bench == word || j.name() == word },
			func(j job) bool { return strings.Contains(j.name(), word) },
		} {
			for _, j := range all {
				if is(j) {
					found, taken[j.name()] = true, true
				}
			}
			if found {
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("--jobs: no job is called %q; `--jobs list` prints them", word)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(j job) bool { return !taken[j.name()] }), nil
}

// heading is what the job's rows stand under.
func (j job) heading() string {
	if j.group == collectives || j.group == neighbors {
		return j.bench
	}
	return j.group
}

func (j job) name() string {
	if j.redist() {
		return fmt.Sprintf("%s-%d-%d", j.bench, j.change.from, j.change.to)
	}
	return fmt.Sprintf("%s-%s-%d", j.bench, j.transport, j.ranks)
}

// points are the rows of the table that the job fills.
func (j job) points() []point {
	if j.redist() {
		return j.redistPoints()
	}
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
	if j.redist() {
		return j.redistArgs()
	}
	if j.bench == spawning {
		return []string{j.bench, "--json", "--rounds", "1", "--count", strconv.Itoa(j.ranks)}
	}
	a := []string{j.bench, "--json", "--transport", j.transport, "--msec", strconv.Itoa(msec)}
	if j.bytes != nil {
		sizes := make([]string, len(j.bytes))
		for i, n := range j.bytes {
			sizes[i] = strconv.FormatInt(n, 10)
		}
		a = append(a, "--bytes", strings.Join(sizes, ","))
	}
	if j.ranks == 2 {
		a = append(a, "--batches")
	}
	if j.group == nonblocking {
		a = append(a, "--overlap")
	}
	return a
}

// begins is with how many ranks the job of an implementation begins.
func (j job) begins(impl string) int {
	if j.redist() && impl == ours {
		return j.change.from
	}
	if j.bench == spawning {
		return 1
	}
	return j.ranks
}

// limit is when the job counts as hanging. A point takes its time twice at
// most (calibration), and a slow barrier may make that several times more.
func (j job) limit(o options) time.Duration {
	if j.redist() {
		return o.timeout + redistTime
	}
	return o.timeout + 4*time.Duration(len(j.points()))*time.Duration(o.msec)*time.Millisecond
}

// point names a row.
type point struct {
	bench, transport string
	ranks            int
	bytes            int64
}
