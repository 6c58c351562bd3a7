// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gompi/internal/base/settings"
)

func of(m map[string]string) func(string) string { return func(name string) string { return m[name] } }

// Each setting says what it is to, wins over what comes after it, and is named as the
// origin.
func TestSettings(t *testing.T) {
	code := Config{Process: Merge, Method: P2P, Strategy: WaitDrains}
	for _, c := range []struct {
		name              string
		gompirun, environ map[string]string
		want              Config
		from              string // of each field
	}{
		{"nothing but code", nil, nil, code, "code auto auto code code"},
		{"numbers as published", nil, map[string]string{
			"MAM_SPAWN_METHOD": "0", "MAM_SPAWN_STRATS": "2", "MAM_PHYSICAL_DISTRIBUTION_METHOD": "1", "MAM_RED_METHOD": "3", "MAM_RED_STRATS": "1",
		}, Config{Process: Baseline, Spawn: SpawnSingle, Placement: Spread, Method: RMALockall, Strategy: Thread},
			"MAM_SPAWN_METHOD MAM_SPAWN_STRATS MAM_PHYSICAL_DISTRIBUTION_METHOD MAM_RED_METHOD MAM_RED_STRATS"},
		{"names as published", nil, map[string]string{
			"MAM_SPAWN_METHOD": "merge", "MAM_SPAWN_STRATS": "MAM_STRAT_SPAWN_PTHREAD,SINGLE", "MAM_PHYSICAL_DISTRIBUTION_METHOD": "COMPACT",
			"MAM_RED_METHOD": "MAM_RED_BASELINE", "MAM_RED_STRATS": "WAIT_SOURCES, WAIT_TARGETS",
		}, Config{Process: Merge, Spawn: SpawnBackground | SpawnSingle, Placement: Compact, Method: COL, Strategy: WaitDrains}, ""},
		{"the last one that excludes others wins", nil, map[string]string{"MAM_SPAWN_STRATS": "MULTIPLE,PARALLEL"},
			Config{Process: Merge, Spawn: SpawnParallel, Method: P2P, Strategy: WaitDrains}, ""},
		{"the other way round", nil, map[string]string{"MAM_SPAWN_STRATS": "PARALLEL,MULTIPLE"},
			Config{Process: Merge, Spawn: SpawnMultiple, Method: P2P, Strategy: WaitDrains}, ""},
		{"gompirun wins", map[string]string{"GOMPI_MAM_RED_METHOD": "pull", "GOMPI_MAM_SPAWN_STRATS": "sequential,background"},
			map[string]string{"MAM_RED_METHOD": "1", "MAM_SPAWN_STRATS": "0", "MAM_NUM_TARGETS": "7"},
			Config{Process: Merge, Spawn: SpawnSequential | SpawnBackground, Method: Pull, Strategy: WaitDrains, Targets: 7},
			"code gompirun auto gompirun code MAM_NUM_TARGETS"},
		{"auto by gompirun", map[string]string{"GOMPI_MAM_RED_METHOD": "auto", "GOMPI_MAM_SPAWN_STRATS": "auto"}, map[string]string{"MAM_RED_METHOD": "1"},
			Config{Process: Merge, Strategy: WaitDrains}, "code auto auto auto code"},
	} {
		got, list, err := settle(code, of(c.gompirun), of(c.environ))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
		var from []string
		for _, s := range list {
			from = append(from, s.From)
		}
		if c.from != "" && strings.Join(from, " ") != c.from {
			t.Errorf("%s: from %v, want %s", c.name, from, c.from)
		}
	}
	for env, value := range map[string]string{
		"MAM_RED_METHOD": "4", "MAM_SPAWN_METHOD": "2", "MAM_SPAWN_STRATS": "6", "MAM_PHYSICAL_DISTRIBUTION_METHOD": "0",
		"MAM_RED_STRATS": "-1", "MAM_NUM_TARGETS": "0",
	} {
		if _, _, err := settle(code, of(nil), of(map[string]string{env: value})); err == nil || !strings.Contains(err.Error(), env) {
			t.Errorf("%s=%s: %v", env, value, err)
		}
	}
	for env, value := range map[string]string{settings.MamMethod.Env: "3", settings.MamStrategy.Env: "nb,wd", settings.MamTargets.Env: "x"} {
		if _, _, err := settle(code, of(map[string]string{env: value}), of(nil)); err == nil || !strings.Contains(err.Error(), env) {
			t.Errorf("%s=%s: %v", env, value, err)
		}
	}
	for _, c := range []Config{{Process: 3}, {Spawn: 1 << 7}, {Placement: 3}, {Method: Method(len(methods))}, {Strategy: Strategy(len(schedules))}, {Targets: -1}} {
		if _, _, err := settle(c, of(nil), of(nil)); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// Names of constants are those of settings, one for one.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		choice settings.Choice
		name   func(i int) string
		last   int
	}{
		{settings.MamProcess, func(i int) string { return Process(i).String() }, int(Merge)},
		{settings.MamPlacement, func(i int) string { return Placement(i).String() }, int(Compact)},
		{settings.MamMethod, func(i int) string { return Method(i).String() }, len(methods) - 1},
		{settings.MamStrategy, func(i int) string { return Strategy(i).String() }, len(schedules) - 1},
	} {
		for i, name := range c.choice.Names {
			if c.name(i) != name {
				t.Errorf("value %d of %s is %s, want %s", i, c.choice.Env, c.name(i), name)
			}
		}
		if c.last != len(c.choice.Names)-1 || c.name(c.last+1) != "?" {
			t.Errorf("%s has %d names, the last constant is %d", c.choice.Env, len(c.choice.Names), c.last)
		}
	}
	if n := len(settings.MamSpawn.Names) - 2; SpawnSequential != 1<<n {
		t.Errorf("%s has %d names, the last constant is %d", settings.MamSpawn.Env, n+2, SpawnSequential)
	}
	if s := (SpawnSingle | SpawnBackground).String(); s != "background,single" {
		t.Error(s)
	}
	if fmt.Sprint(Method(Auto), Spawn(Auto)) != "auto auto" {
		t.Error("auto has another name")
	}
}

// What the reference repairs is repaired, and told; what it leaves is left.
func TestRepairs(t *testing.T) {
	merge := Config{Process: Merge, Method: COL, Strategy: NonBlocking}
	with := func(change func(*Config)) Config {
		c := merge
		change(&c)
		return c
	}
	for _, c := range []struct {
		name   string
		is     Config
		ns, nd int
		spans  bool
		want   Config
		told   []string // words of each reason
	}{
		{"nothing", merge, 2, 4, true, merge, nil},
		{"migration", merge, 4, 4, false, with(func(c *Config) { c.Process = Baseline }), []string{"migration"}},
		{"multiple shrinks on several hosts", with(func(c *Config) { c.Spawn = SpawnMultiple }), 4, 2, true,
			with(func(c *Config) { c.Spawn, c.Process = SpawnMultiple, Baseline }), []string{"several hosts"}},
		{"parallel shrinks on several hosts", with(func(c *Config) { c.Spawn = SpawnParallel }), 4, 2, true,
			with(func(c *Config) { c.Spawn, c.Process = SpawnParallel, Baseline }), []string{"several hosts"}},
		{"it shrinks on one", with(func(c *Config) { c.Spawn = SpawnMultiple }), 4, 2, false, with(func(c *Config) { c.Spawn = SpawnMultiple }), nil},
		{"it grows", with(func(c *Config) { c.Spawn = SpawnMultiple }), 2, 4, true, with(func(c *Config) { c.Spawn = SpawnMultiple }), nil},
		{"merge has no intercommunicator", with(func(c *Config) { c.Spawn = SpawnInter }), 2, 4, false, merge, []string{"intercomm"}},
		{"baseline has", with(func(c *Config) { c.Process, c.Spawn = Baseline, SpawnInter }), 2, 4, false,
			with(func(c *Config) { c.Process, c.Spawn = Baseline, SpawnInter }), nil},
		{"merge shrinks", with(func(c *Config) { c.Spawn = SpawnSingle | SpawnBackground }), 4, 2, false, merge, []string{"single", "background"}},
		{"baseline shrinks", with(func(c *Config) { c.Process, c.Spawn = Baseline, SpawnSingle }), 4, 2, false,
			with(func(c *Config) { c.Process, c.Spawn = Baseline, SpawnSingle }), nil},
		{"windows", with(func(c *Config) { c.Process, c.Spawn, c.Method = Baseline, SpawnInter, RMALock }), 2, 4, false,
			Config{Process: Baseline, Method: RMALock, Strategy: WaitDrains}, []string{"windows", "wd"}},
		{"windows in a thread", with(func(c *Config) { c.Method, c.Strategy = RMALockall, Thread }), 2, 4, false,
			with(func(c *Config) { c.Method, c.Strategy = RMALockall, Thread }), nil},
		{"windows at the commit", with(func(c *Config) { c.Method, c.Strategy = RMALockall, Blocking }), 2, 4, false,
			with(func(c *Config) { c.Method, c.Strategy = RMALockall, Blocking }), nil},
		{"pull without requests", with(func(c *Config) { c.Method = Pull }), 2, 4, false,
			with(func(c *Config) { c.Method, c.Strategy = Pull, WaitDrains }), []string{"pull"}},
		{"parallel excludes", with(func(c *Config) { c.Spawn = SpawnParallel | SpawnSingle | SpawnMultiple }), 2, 4, false,
			with(func(c *Config) { c.Spawn = SpawnParallel }), []string{"single,multiple"}},
	} {
		got, why := repaired(c.is, c.ns, c.nd, c.spans)
		if got != c.want || len(why) != len(c.told) {
			t.Errorf("%s: %+v, %q; want %+v, %q", c.name, got, why, c.want, c.told)
			continue
		}
		for i, word := range c.told {
			if !strings.Contains(why[i], word) {
				t.Errorf("%s: told %q, want %q in it", c.name, why[i], word)
			}
		}
		if again, why := repaired(got, c.ns, c.nd, c.spans); again != got || why != nil {
			t.Errorf("%s: repaired again to %+v, %q", c.name, again, why)
		}
	}
}

// fields covers the whole of Config but Targets.
func TestFieldsAreAll(t *testing.T) {
	var c Config
	if n := reflect.TypeOf(c).NumField(); len(c.fields()) != n-1 {
		t.Errorf("%d of %d fields have settings", len(c.fields()), n-1)
	}
}
