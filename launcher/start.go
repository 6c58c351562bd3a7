// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"golang.org/x/sys/unix"

	"gompi/internal/control"
	"gompi/internal/onehost"
)

// launch starts the processes of the command line.
func (h *head) launch() error {
	var argvs [][]string
	var apps []int
	for i := range h.o.apps {
		a := &h.o.apps[i]
		for range a.np {
			argvs, apps = append(argvs, a.argv), append(apps, i)
		}
	}
	if err := h.agent.open(); err != nil {
		return err
	}
	starts, _, err := h.server.AddJob(argvs)
	if err != nil {
		return err
	}
	_, err = h.start(starts, apps, true)
	return err
}

// spawn starts processes that a process of the job asked for. The server
// calls it on a goroutine of its own.
func (h *head) spawn(starts []onehost.StartProc) error {
	answer := make(chan error, 1) // the head never waits
	h.post(func() {
		if h.ending || h.drained {
			answer <- control.ErrEnding
			return
		}
		procs, err := h.start(starts, make([]int, len(starts)), false)
		if err != nil {
			for _, p := range procs {
				if p.pid != 0 {
					p.discarded = true
					h.agent.signal(p.id, unix.SIGKILL)
				} else {
					h.procs.forget(p)
				}
			}
		}
		answer <- err
	})
	select {
	case err := <-answer:
		return err
	case <-h.ended:
	}
	select {
	case err := <-answer: // the last that the head did
		return err
	default:
		return control.ErrEnding
	}
}

// start has the agent start processes, which are a world of their own.
func (h *head) start(starts []onehost.StartProc, apps []int, first bool) ([]*proc, error) {
	w := &world{}
	procs := make([]*proc, len(starts))
	list := make([]starting, len(starts))
	for i, sp := range starts {
		l := label{first: first, serial: sp.Proc.Serial, rank: sp.Rank, size: sp.Size}
		procs[i] = &proc{label: l, id: sp.Proc, world: w}
		list[i] = starting{StartProc: sp, label: l, app: apps[i]}
		h.procs.add(procs[i])
	}
	pids, err := h.agent.start(list)
	for i, pid := range pids {
		h.procs.started(procs[i], pid)
	}
	return procs, err
}
