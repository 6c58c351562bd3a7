// SPDX-License-Identifier: Apache-2.0

package testjob

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/control/server"
)

// Changes are the functions of server.Config that carry out changes of process sets. A nil function
// does nothing, but a nil Launch refuses.
type Changes struct {
	Launch                 func(l *server.Launch) error
	Discard, Kept          func(procs []wire.ProcID)
	Leave, Terminate, Main func(procs []wire.ProcID)
}

// OnChange sets the functions that carry out changes from now on.
func (j *Job) OnChange(c Changes) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.changes = c
}

// serveChanges connects the server to the functions of OnChange.
func (j *Job) serveChanges(sc *server.Config) {
	current := func() Changes {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.changes
	}
	sc.Launch = func(l *server.Launch) error {
		if f := current().Launch; f != nil {
			return f(l)
		}
		return fmt.Errorf("testjob: the job starts no processes by itself")
	}
	call := func(which func(c *Changes) func([]wire.ProcID)) func([]wire.ProcID) {
		return func(procs []wire.ProcID) {
			c := current()
			if f := which(&c); f != nil {
				f(procs)
			}
		}
	}
	sc.Discard = call(func(c *Changes) func([]wire.ProcID) { return c.Discard })
	sc.Kept = call(func(c *Changes) func([]wire.ProcID) { return c.Kept })
	sc.Leave = call(func(c *Changes) func([]wire.ProcID) { return c.Leave })
	sc.Terminate = call(func(c *Changes) func([]wire.ProcID) { return c.Terminate })
	sc.Main = call(func(c *Changes) func([]wire.ProcID) { return c.Main })
}
