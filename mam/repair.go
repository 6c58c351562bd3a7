// SPDX-License-Identifier: Apache-2.0

package mam

// repaired returns the configuration with which ns ranks become nd. Fields that exclude each
// other are changed as the reference does (MAM_Check_configuration); why has a reason for each
// change. spans says that a world of the job has processes on several hosts.
func repaired(c Config, ns, nd int, spans bool) (_ Config, why []string) {
	say := func(text string) { why = append(why, text) }
	if c.Spawn&SpawnParallel != 0 {
		if not := c.Spawn & (SpawnSingle | SpawnMultiple); not != 0 {
			c.Spawn &^= not
			say("spawn " + not.String() + " does not go with parallel")
		}
	}
	if ns == nd && c.Process != Baseline {
		c.Process = Baseline
		say("process baseline: as many ranks as before are a migration")
	}
	if c.Spawn&(SpawnMultiple|SpawnParallel) != 0 && spans && nd < ns && c.Process != Baseline {
		c.Process = Baseline
		say("process baseline: a job that shrinks keeps no world over several hosts with spawn multiple or parallel")
	}
	drop := func(s Spawn, reason string) {
		if c.Spawn&s != 0 {
			c.Spawn &^= s
			say("no spawn " + s.String() + ": " + reason)
		}
	}
	if c.Process == Merge {
		drop(SpawnInter, "merge has one communicator of all")
		if nd < ns {
			drop(SpawnSingle, "merge starts nobody when the job shrinks")
			drop(SpawnBackground, "merge starts nobody when the job shrinks")
		}
	}
	if c.Method != Auto {
		row := methods[c.Method]
		if row.windows {
			drop(SpawnInter, "windows are of one communicator of all")
		}
		if !row.requests && c.Strategy == NonBlocking {
			c.Strategy = WaitDrains
			say("strategy wd: with method " + c.Method.String() + " only targets know when they have their data")
		}
	}
	return c, why
}
