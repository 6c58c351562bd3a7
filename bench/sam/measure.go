// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// measured notes on rank 0 what the change has taken that is over now: the longest of all
// ranks, and the sum of their bytes. Collective.
func (a *app) measured(now int64) error {
	comm, t := a.m.Comm(), a.m.Times()
	mine := [8]int64{int64(t.RMS), int64(t.Spawn), int64(t.Async), int64(t.User), int64(t.Sync), int64(t.Touch), int64(t.Commit), now - a.at.Asked}
	all := make([]int64, len(mine))
	if err := mpi.Reduce(comm, mine[:], all, mpi.Max, 0); err != nil {
		return err
	}
	moved, err := mpi.ReduceOne(comm, t.Bytes, mpi.Sum, 0)
	if err != nil || comm.Rank() != 0 {
		return err
	}
	msec := func(i int) float64 { return float64(max(all[i], 0)) / float64(time.Millisecond) }
	g := &a.at.Config.Groups[a.at.Group]
	a.at.Resizes = append(a.at.Resizes, report.SamResize{
		From: a.at.Config.Groups[a.at.Group-1].Procs, To: g.Procs, Process: a.m.Config().Process.String(), Method: t.Method.String(), Strategy: t.Strategy.String(),
		RMSMsec: msec(0), SpawnMsec: msec(1), AsyncMsec: msec(2), UserMsec: msec(3), SyncMsec: msec(4), TouchMsec: msec(5), CommitMsec: msec(6), TotalMsec: msec(7),
		MovedBytes: moved,
	})
	return nil
}
