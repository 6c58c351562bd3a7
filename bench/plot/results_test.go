// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"

	"gompi/bench/report"
)

// everything is results of each kind that a page can have, with names as long as they come.
func everything() (rs []report.Result) {
	for i, transport := range []string{"gompi/shm", "openmpi/shm", "mpich/shm", "gompi/tcp", "mpich/tcp"} {
		for _, bytes := range []int64{8, 4096, 4 << 20} {
			usec := float64(i+1) * (0.2 + float64(bytes)/1e4)
			for _, bench := range []string{"latency", "bw"} {
				rs = append(rs, report.Result{Bench: bench, Transport: transport, Ranks: 2, Bytes: bytes, Usec: usec, UsecMin: usec / 2, UsecP99: usec * 2, MBps: float64(bytes) / usec})
			}
		}
	}
	for _, bytes := range []int64{1, 24, 25, 64 << 10} {
		near, far := 0.1+float64(bytes)/1e4, 0.2+float64(bytes)/4e3
		rs = append(rs, report.Result{Bench: "curve", Transport: "shm", Ranks: 2, Bytes: bytes, Usec: near, UsecMin: near, UsecP99: far, MBps: float64(bytes) / near,
			States: &report.States{UsecNear: near, UsecFar: far, BatchesNear: 80, BatchesFar: 20, ProbeNear: 50, ProbeFar: 300}, Curve: &report.Curve{}})
	}
	for i, delta := range []int{28, 56, 84} {
		for _, mode := range []string{"add", "sub"} {
			r := report.Result{Bench: "resize", Transport: "shm", Ranks: 28}
			r.SetResize([]report.Resize{{Mode: mode, Delta: delta, TotalMsec: 50 * float64(i+1), ReadyMsec: 40, GoneMsec: 9, AppOverheadMsec: 4, FirstBarrierMsec: 2}})
			rs = append(rs, r)
		}
		r := report.Result{Bench: "spawn", Transport: "shm", Ranks: 1}
		r.SetSpawn([]report.Spawn{{Count: delta, Msec: float64(delta), MergeMsec: 1}})
		rs = append(rs, r)
	}
	pairs := [][2]int{{1, 2}, {1, 4}, {1, 8}, {2, 1}, {2, 4}, {2, 8}, {4, 1}, {4, 2}, {4, 8}, {8, 1}, {8, 2}, {8, 4}}
	for i, p := range pairs {
		for j, method := range methodOrder {
			for k, strategy := range strategyOrder {
				for _, mib := range []int64{256, 64} {
					if mib == 64 && i > 0 {
						continue
					}
					x := report.Redist{From: p[0], To: p[1], Method: method, Strategy: strategy, Msec: float64(int64(1+i+j+k) * mib / 8), WarmMsec: float64(1 + i + j), FromIterMsec: 10, ToIterMsec: 7}
					if strategy != report.BlockingStrategy {
						x.Omega, x.Iterations = 1+float64(j)/10, float64(k+j)
					}
					r := report.Result{Bench: "redist", Transport: "shm", Ranks: p[0], Bytes: mib << 20}
					r.SetRedist([]report.Redist{x})
					rs = append(rs, r)
				}
			}
		}
	}
	for variant := range 10 {
		for rep := range 2 {
			rs = append(rs, samRun(fmt.Sprintf("2->4->1 ADR=%d rma-lockall wd", 10*variant), rep))
		}
	}
	return rs
}

// samRun has two phases and two changes.
func samRun(variant string, rep int) report.Result {
	phase := func(phase, iters, overlapped, stages int, msec float64) report.SamPhase {
		p := report.SamPhase{Phase: phase, Overlapped: overlapped, AsyncIters: overlapped / 2, StageMsec: make([][]float64, stages)}
		for i := range iters {
			p.IterMsec = append(p.IterMsec, msec+float64(i%3+rep))
			for k := range p.StageMsec {
				p.StageMsec[k] = append(p.StageMsec[k], msec/float64(stages))
			}
		}
		return p
	}
	resize := func(from, to int) report.SamResize {
		return report.SamResize{From: from, To: to, Process: "merge", Method: "rma-lockall", Strategy: "wd", SpawnMsec: 12, AsyncMsec: 30, SyncMsec: 4, TotalMsec: 60, MovedBytes: 1 << 20}
	}
	r := report.Result{Bench: "sam", Transport: "shm", Ranks: 2, Bytes: 2 << 20}
	r.SetTimes([]float64{1e6})
	r.Sam = &report.Sam{
		Config: "cg.json", Variant: variant, Key: "0", Repetition: rep, TotalMsec: 1000 + float64(rep),
		Stages:  [][]string{{"pi", "allreduce"}, {"pi", "allreduce", "allgather"}},
		Groups:  []report.SamGroup{{Procs: 2, Phases: []report.SamPhase{phase(0, 20, 0, 2, 5), phase(1, 10, 4, 3, 10)}}, {Procs: 4, Phases: []report.SamPhase{phase(1, 30, 8, 3, 6)}}, {Procs: 1, Phases: []report.SamPhase{phase(1, 9, 0, 3, 20)}}},
		Resizes: []report.SamResize{resize(2, 4), resize(4, 1)},
	}
	return r
}
