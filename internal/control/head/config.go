// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// Config is what a head is told of its job. The functions become effects; any of
// them may be nil.
type Config struct {
	// Job must not be 0.
	Job    wire.JobID
	Secret [32]byte
	// Settings, FaultTolerant and KillGrace are handed to every process.
	Settings      map[string]string
	FaultTolerant bool
	KillGrace     time.Duration
	// UsableCPUs is what the processes of a host may use together.
	UsableCPUs int
	// MaxProcs is the GOMAXPROCS for a process when localProcs (at least
	// 1) share the host; it must be pure. nil: 0, leave it alone.
	MaxProcs func(localProcs int) int
	// PSets are made with the first world. HostNames are those of the hosts, by number;
	// nil: they have no sets.
	PSets     []PSet
	HostNames []string
	// Spawns: processes may ask for more. Each Spawn is an effect.
	Spawns bool
	// Signals: processes may send them to those that they have spawned. Each is an
	// effect.
	Signals bool
	// Boards: processes share memory, so that sets of which communicators are made
	// are given the memory for shared collectives.
	Boards bool
	// Launches: processes may come by changes of sets. Each Launch is an effect.
	Launches bool
	// Slots is how many processes the job may have at a time; 0: as many as there is
	// memory for.
	Slots int
	// Lease, if not 0, is how many of them it may take, at first: somebody else decides,
	// by Head.Lease, and is told by Used how it uses them, whenever that changes.
	Lease int
	Used  func(Use)
	// Said: a process has said something of its scaling, with an operation, which is not
	// checked. The bytes are the callee's.
	Said func(col []byte)
	// Min and Max bound the main set: no change makes it smaller or larger; 0: no
	// bound.
	Min, Max int
	// HostSlots is how many processes each of several hosts is there for, by number:
	// see Place. Strict: it never has more.
	HostSlots []int
	Strict    bool
	// ToReady, ToAccept and ToCommit are the deadlines of a change of which nobody has
	// said others: from the grant until all newcomers are ready, from there until the
	// first member was handed it, and from there until all have voted. LeaveTimeout is
	// how long a leaver has to end by itself. 0: a minute; negative: for ever.
	ToReady, ToAccept, ToCommit, LeaveTimeout time.Duration
	// Now is the time since some moment. It is called in each step that needs it.
	// nil: time stands still.
	Now func() time.Duration
	// Epoch is the wall's clock when Now was 0, for people.
	Epoch time.Time
	// Aborted: a process asked for the end of the job.
	Aborted func(by wire.ProcID, code int, msg string)
	// Joined and Finalized: p has said hello, has left in order.
	Joined, Finalized func(p wire.ProcID)
}

// Validate refuses what no process could be told.
func (cfg *Config) Validate() error {
	if cfg.Job == 0 {
		return errors.New("control: job id is 0")
	}
	if len(cfg.Settings) > protocol.MaxSettings {
		return fmt.Errorf("control: %d settings, at most %d allowed", len(cfg.Settings), protocol.MaxSettings)
	}
	names := map[string]bool{}
	for i := range cfg.PSets {
		if err := cfg.PSets[i].check(); err != nil {
			return err
		}
		if name := cfg.PSets[i].Name; names[name] {
			return fmt.Errorf("control: two process sets are called %q", name)
		}
		names[cfg.PSets[i].Name] = true
	}
	total := 0
	for k, v := range cfg.Settings {
		if total += len(k) + len(v); total > protocol.MaxAllSettings {
			return fmt.Errorf("control: settings of more than %d bytes", protocol.MaxAllSettings)
		}
		if len(k) > protocol.MaxSetting || len(v) > protocol.MaxSetting {
			return fmt.Errorf("control: setting %.40q has %d bytes, at most %d allowed", k, max(len(k), len(v)), protocol.MaxSetting)
		}
	}
	return nil
}
