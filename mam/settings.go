// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/internal/base/settings"
)

// Setting is one field of the configuration, and where its value comes from.
type Setting struct {
	Field string // of Config
	Value string
	From  string // "gompirun" (its flag, or GOMPI_MAM_*), a variable MAM_*, "code", "auto"
}

// String returns a line for people.
func (s Setting) String() string { return fmt.Sprintf("%s=%s (%s)", s.Field, s.Value, s.From) }

// published describes the reference's environment variable of a field: numbers, or names with or
// without their prefix.
type published struct {
	env     string
	prefix  string
	names   map[string]int // values of the field; for Spawn bits, 0: all at once
	numbers []int          // by the published number; -1: we have no such value
	several bool           // several strategies, separated by commas
}

var (
	publishedProcess = published{
		"MAM_SPAWN_METHOD", "MAM_SPAWN_",
		map[string]int{"BASELINE": int(Baseline), "MERGE": int(Merge)},
		[]int{int(Baseline), int(Merge)},
		false,
	}
	publishedSpawn = published{
		"MAM_SPAWN_STRATS", "MAM_STRAT_SPAWN_",
		map[string]int{
			"CLEAR": 0, "PTHREAD": int(SpawnBackground), "SINGLE": int(SpawnSingle), "INTERCOMM": int(SpawnInter),
			"MULTIPLE": int(SpawnMultiple), "PARALLEL": int(SpawnParallel),
		},
		[]int{0, int(SpawnBackground), int(SpawnSingle), int(SpawnInter), int(SpawnMultiple), int(SpawnParallel)},
		true,
	}
	publishedPlacement = published{
		"MAM_PHYSICAL_DISTRIBUTION_METHOD", "MAM_PHY_DIST_",
		map[string]int{"SPREAD": int(Spread), "COMPACT": int(Compact)},
		[]int{-1, int(Spread), int(Compact)},
		false,
	}
	publishedMethod = published{
		"MAM_RED_METHOD", "MAM_RED_",
		map[string]int{"BASELINE": int(COL), "POINT": int(P2P), "RMA_LOCK": int(RMALock), "RMA_LOCKALL": int(RMALockall)},
		[]int{int(COL), int(P2P), int(RMALock), int(RMALockall)},
		false,
	}
	publishedStrategy = published{
		"MAM_RED_STRATS", "MAM_STRAT_RED_",
		map[string]int{"CLEAR": int(NonBlocking), "PTHREAD": int(Thread), "WAIT_SOURCES": int(NonBlocking), "WAIT_TARGETS": int(WaitDrains)},
		[]int{int(NonBlocking), int(Thread), int(NonBlocking), int(WaitDrains)},
		true, // the last one wins
	}
)

const publishedTargets = "MAM_NUM_TARGETS"

// parse parses a value.
func (p *published) parse(text string) (list []int, err error) {
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(item)), p.prefix)
		v, ok := p.names[item]
		if n, err := strconv.Atoi(item); !ok && err == nil && n >= 0 && n < len(p.numbers) {
			v, ok = p.numbers[n], p.numbers[n] >= 0
		}
		if !ok || len(list) > 0 && !p.several {
			return nil, fmt.Errorf("%s=%s: %q is no published name or number", p.env, text, item)
		}
		list = append(list, v)
	}
	return list, nil
}

// fields returns the fields of a Config, each with its settings and its place.
func (c *Config) fields() []field {
	plain := func(set func(int), is func() int) (func([]int), func() bool) {
		return func(list []int) { set(list[len(list)-1]) }, func() bool { return is() != 0 }
	}
	process, hasProcess := plain(func(v int) { c.Process = Process(v) }, func() int { return int(c.Process) })
	placement, hasPlacement := plain(func(v int) { c.Placement = Placement(v) }, func() int { return int(c.Placement) })
	method, hasMethod := plain(func(v int) { c.Method = Method(v) }, func() int { return int(c.Method) })
	strategy, hasStrategy := plain(func(v int) { c.Strategy = Strategy(v) }, func() int { return int(c.Strategy) })
	spawn := func(list []int) {
		c.Spawn = 0
		for _, v := range list {
			if v == 0 {
				c.Spawn = SpawnAll
				continue
			}
			c.Spawn = c.Spawn.with(Spawn(v))
		}
	}
	return []field{
		{"Process", settings.MamProcess, &publishedProcess, process, hasProcess, func() string { return c.Process.String() }},
		{"Spawn", settings.MamSpawn, &publishedSpawn, spawn, func() bool { return c.Spawn != 0 }, func() string { return c.Spawn.String() }},
		{"Placement", settings.MamPlacement, &publishedPlacement, placement, hasPlacement, func() string { return c.Placement.String() }},
		{"Method", settings.MamMethod, &publishedMethod, method, hasMethod, func() string { return c.Method.String() }},
		{"Strategy", settings.MamStrategy, &publishedStrategy, strategy, hasStrategy, func() string { return c.Strategy.String() }},
	}
}

type field struct {
	name   string
	choice settings.Choice
	pub    *published
	set    func([]int)
	given  func() bool
	text   func() string
}

// settle returns the configuration that holds. Each field has the first value of: gompirun (a
// flag, or GOMPI_MAM_*), the published variable, the code. A field without a value stays Auto.
func settle(code Config, gompirun, environ func(name string) string) (Config, []Setting, error) {
	c := code
	var list []Setting
	for _, f := range c.fields() {
		from := "auto"
		if f.given() {
			from = "code"
		}
		if text := environ(f.pub.env); text != "" {
			v, err := f.pub.parse(text)
			if err != nil {
				return c, nil, err
			}
			f.set(v)
			from = f.pub.env
		}
		if text := gompirun(f.choice.Env); text != "" {
			v, err := f.choice.Parse(text)
			if err != nil {
				return c, nil, fmt.Errorf("%s: %w", f.choice.Env, err)
			}
			if f.choice.List {
				v = bitsOf(v)
			}
			f.set(v)
			from = "gompirun"
		}
		if !f.given() {
			from = "auto"
		}
		list = append(list, Setting{f.name, f.text(), from})
	}
	from := "code"
	for _, s := range []struct {
		text, env, from string
	}{{environ(publishedTargets), publishedTargets, publishedTargets}, {gompirun(settings.MamTargets.Env), settings.MamTargets.Env, "gompirun"}} {
		if s.text != "" {
			n, err := settings.MamTargets.Parse(s.text)
			if err != nil {
				return c, nil, fmt.Errorf("%s: %w", s.env, err)
			}
			c.Targets, from = int(n), s.from
		}
	}
	if c.Targets != 0 {
		list = append(list, Setting{"Targets", strconv.Itoa(c.Targets), from})
	}
	return c, list, c.check()
}

// bitsOf turns indices of names of Spawn into its bits. Auto alone has no bits.
func bitsOf(list []int) (bits []int) {
	if slices.Equal(list, []int{0}) {
		return nil
	}
	for _, i := range list {
		if i > 0 {
			bits = append(bits, 1<<(i-1))
		}
	}
	return bits
}

// check checks that each field has a value that exists.
func (c *Config) check() error {
	switch {
	case c.Process > Merge:
		return fmt.Errorf("no process method %d", c.Process)
	case c.Spawn >= 2*SpawnSequential:
		return fmt.Errorf("no spawn strategies %#x", uint8(c.Spawn))
	case c.Placement > Compact:
		return fmt.Errorf("no placement %d", c.Placement)
	case int(c.Method) >= len(methods):
		return fmt.Errorf("no method %d", c.Method)
	case int(c.Strategy) >= len(schedules):
		return fmt.Errorf("no strategy %d", c.Strategy)
	case c.Targets < 0 || c.Targets > int(settings.MamTargets.Max):
		return fmt.Errorf("%d targets", c.Targets)
	}
	return nil
}
