// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"gompi/internal/wire"
)

// ServerConfig is what the launcher gives to its server. The functions are
// called without any lock of the server held and may call its methods except
// Close. All but Start and MaxProcs are called one at a time and in order, by
// one goroutine: they should not block. Any function may be nil.
type ServerConfig struct {
	// Job must not be 0.
	Job    wire.JobID
	Secret [32]byte
	// Settings, FaultTolerant and KillGrace are handed to every process.
	Settings      map[string]string
	FaultTolerant bool
	KillGrace     time.Duration
	// UsableCPUs is what the processes of this host may use together.
	UsableCPUs int
	// MaxProcs is the GOMAXPROCS for a process when localProcs (at least
	// 1) share the host; it must be pure. nil: 0, leave it alone.
	MaxProcs func(localProcs int) int
	// Start launches processes for a Spawn, on a goroutine of its own. On an
	// error none of them counts as started and none may run on; those that
	// had been started are reported with Exited all the same. nil: Spawn is
	// refused.
	Start func(procs []StartProc) error
	// Aborted: a process asked for the end of the job.
	Aborted func(by wire.ProcID, code int, msg string)
	// Reap: nobody uses p's pid any more; the exited child may be waited
	// for. Called once for every process whose Exited was called.
	Reap func(p wire.ProcID)
	// Joined and Finalized: p has said hello, has left in order.
	Joined, Finalized func(p wire.ProcID)
	// Lost: the connection of p has ended a while ago, though p has not left
	// in order, and Exited was not called. If its child runs on, the answer is
	// Server.Lost. nil: p counts as dead without more ado.
	Lost func(p wire.ProcID)
	// Dropped: the server ended p's connection because p broke the protocol
	// or did not read; p should be killed.
	Dropped func(p wire.ProcID, why string)
}

// StartProc is one process to start. Its environment must get
// GOMPI_CONTROL=Server.Addr() and GOMPI_TOKEN=Token.
type StartProc struct {
	Proc       wire.ProcID
	Token      string
	Argv       []string
	Rank, Size int
}
