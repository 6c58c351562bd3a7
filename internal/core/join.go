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

// Join prepares a process of the operating system: as a rank of the job that gompirun
// started it in, or as a singleton, rank 0 of 1. A process may call it again only after the
// Process that it made has ended.
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

// joinNobody prepares a singleton.
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

// envSettings reads the settings of a singleton from the environment. It leaves out tables
// and models: their variables name files, and one process has nothing to choose.
func envSettings() map[string]string {
	m := map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "GOMPI_") && k != "GOMPI_COLL_TABLE" && k != "GOMPI_SHM_TABLE" && k != settings.MamModel {
			m[k] = v
		}
	}
	return m
}

// warnAlone warns that the ranks of another launcher do not find each other.
func warnAlone() {
	for _, v := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"} {
		if os.Getenv(v) != "" {
			fmt.Fprintf(os.Stderr, "gompi: %s is set, but only gompirun starts gompi ranks: this process runs alone, as rank 0 of 1\n", v)
			return
		}
	}
}
