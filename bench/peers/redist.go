// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"gompi/bench/report"
)

const (
	redistMiB    = 256
	redistRounds = 5 // of each method in each round of the runner

	// redistTime is what all methods of a job may take beyond the usual time limit.
	redistTime = 3 * time.Minute
)

// What a redistribution is measured with: new memory to receive into, or one that is there.
const (
	cold = "cold"
	warm = "warm"
)

// redistJobs are redistributions of data between numbers of ranks: gompi changes its size by
// package mam, a peer has a static job of as many ranks as there are before or after
// (redist.c). Each row is of the best method of each.
func redistJobs() []job {
	var list []job
	ranks := []int{1, 2, 4, 8}
	for _, from := range ranks {
		for _, to := range ranks {
			if from == to {
				continue
			}
			j := job{group: redistribution, bench: redistribution, transport: "shm", ranks: max(from, to), change: &change{from, to}}
			if ratio := max(from, to) / min(from, to); ratio == 2 {
				j.goals = []float64{0.5, 0.8}
			}
			list = append(list, j)
		}
	}
	return list
}

// change is from how many ranks to how many.
type change struct{ from, to int }

func (j job) redist() bool { return j.change != nil }

// redistPoints are the rows of such a job.
func (j job) redistPoints() []point {
	var ps []point
	for _, state := range []string{cold, warm} {
		ps = append(ps, point{fmt.Sprintf("%s, %d to %d ranks, %s", redistribution, j.change.from, j.change.to, state), j.transport, j.ranks, redistMiB << 20})
	}
	return ps
}

func (j job) redistArgs() []string {
	return []string{
		redistribution, "--json", "--transport", j.transport, "--from", strconv.Itoa(j.change.from), "--to", strconv.Itoa(j.change.to),
		"--mib", strconv.Itoa(redistMiB), "--strategies", report.BlockingStrategy, "--rounds", strconv.Itoa(redistRounds),
	}
}

// redistRows makes the results of such a job's rows out of those of its methods; err is that
// of the job, of which nothing counts then.
func (j job) redistRows(rs []report.Result, err error) ([]report.Result, error) {
	if err != nil {
		return nil, err
	}
	least := [2]float64{math.Inf(1), math.Inf(1)}
	for i, r := range rs {
		x := r.Redist
		if x == nil || x.From != j.change.from || x.To != j.change.to || x.Background() || r.Bytes != redistMiB<<20 {
			return nil, fmt.Errorf("result %d is %+v", i, r)
		}
		least[0], least[1] = min(least[0], x.Msec), min(least[1], x.WarmMsec)
	}
	if len(rs) == 0 {
		return nil, fmt.Errorf("no result")
	}
	rows := make([]report.Result, len(least))
	for i, p := range j.redistPoints() {
		rows[i] = report.Result{Bench: p.bench, Transport: p.transport, Ranks: p.ranks, Bytes: p.bytes, Usec: 1e3 * least[i]}
	}
	return rows, nil
}

// onlyIfNamed are the jobs that an empty list leaves out: they take long.
func onlyIfNamed(j job) bool { return j.redist() }

func usual(all []job) []job { return slices.DeleteFunc(slices.Clone(all), onlyIfNamed) }
