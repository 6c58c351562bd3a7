// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"gompi/internal/base/settings"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/host/wait"
)

// Join is what a process of the operating system is made of: a rank of the job
// that gompirun has started it in, or rank 0 of 1. One process calls it once at
// a time.
func Join() (Boot, error) {
	addr, token, ok := protocol.FromEnv()
	if !ok {
		return joinNobody(), nil
	}
	return join(addr, token)
}

// GiveUp tells the launcher that the process could not begin.
func (b *Boot) GiveUp(why error) {
	if _, ok := b.Control.(*singleton); !ok {
		b.Control.Abort(1, why.Error())
	}
}

// joinNobody is for a process that nobody launched.
func joinNobody() Boot {
	warnAlone()
	self := wire.ProcID{Job: 1, Serial: 1}
	w := &protocol.Welcome{
		Self: self, World: wire.Set{URI: "mpi://WORLD", Number: 1, Members: wire.MembersOf(self)},
		Segment: -1, Bell: -1, LocalProcs: 1, UsableCPUs: runtime.GOMAXPROCS(0), Settings: envSettings(),
	}
	// It has no descriptor to wait for.
	return Boot{Control: newSingleton(w.World), Welcome: w, Sleeper: wait.NewChan(), Policy: wait.ForOS(1, 2)}
}

// envSettings reads the knobs of a process without a head. Tables and a model
// have nothing to decide there, and their variables name files.
func envSettings() map[string]string {
	m := map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "GOMPI_") && k != "GOMPI_COLL_TABLE" && k != "GOMPI_SHM_TABLE" && k != settings.MamModel {
			m[k] = v
		}
	}
	return m
}

// warnAlone tells once that another launcher's ranks do not know each other.
func warnAlone() {
	for _, v := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"} {
		if os.Getenv(v) != "" {
			fmt.Fprintf(os.Stderr, "gompi: %s is set, but only gompirun starts gompi ranks: this process runs singleton, as rank 0 of 1\n", v)
			return
		}
	}
}
