// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/stages"
	"gompi/mam"
)

// configOf makes a Config of a tree without alternatives. Numbers may be texts.
// iterations: the phase does as many iterations as all groups, as the old form of the INI
// files means it.
func configOf(tree any, iterations bool) (*Config, error) {
	r := &reader{}
	root := r.object("", tree)
	general := r.object("general", root.take("general"))
	c := &Config{
		SDR: int64(general.integer("SDR", mostData)), ADR: int64(general.integer("ADR", mostData)),
		Datasize: general.integer("Datasize", mostData),
		Capture:  Capture(general.integer("Capture_Method", 2)),
	}
	switch rigid := general.integer("Rigid", 1); rigid {
	case 0, 1:
		c.Rigid = rigid == 1
	}
	phases := r.list("phases", root.take("phases"))
	if n := general.integer("Total_Phases", mostList); n != len(phases) {
		r.bad("general.Total_Phases is %d, and there are %d phases", n, len(phases))
	}
	for i, v := range phases {
		c.Phases = append(c.Phases, r.phase(fmt.Sprintf("phases[%d]", i), v))
	}
	groups := r.list("groups", root.take("groups"))
	if n := general.integer("Total_Resizes", mostList); n != len(groups)-1 {
		r.bad("general.Total_Resizes is %d, and there are %d groups, not one more", n, len(groups))
	}
	for i, v := range groups {
		c.Groups = append(c.Groups, r.group(fmt.Sprintf("groups[%d]", i), v))
	}
	general.done()
	root.done()
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	if iterations {
		c.Phases[0].Iters = 0
		for _, g := range c.Groups {
			c.Phases[0].Iters += g.Iters
		}
	}
	return c, c.Check()
}

func (r *reader) phase(path string, v any) (p Phase) {
	o := r.object(path, v)
	p.Iters = o.integer("Total_Iters", mostIters)
	list := r.list(path+".stages", o.take("stages"))
	if n := o.integer("Total_Stages", mostList); n != len(list) {
		r.bad("%s.Total_Stages is %d, and there are %d stages", path, n, len(list))
	}
	o.done()
	for i, v := range list {
		o := r.object(fmt.Sprintf("%s.stages[%d]", path, i), v)
		s := stages.Stage{
			Kind: stages.Kind(o.integer("Stage_Type", 100)), Bytes: o.integer("Stage_Bytes", mostData), Seconds: o.number("Stage_Time"),
			Granularity: o.optional("Granularity"), ID: o.optional("Stage_Identifier"), Involved: o.optional("Stage_Involved_Procs"),
		}
		switch n := o.optional("Stage_Time_Capped"); n {
		case 0, 1:
			s.Capped = n == 1
		default:
			r.bad("%s.Stage_Time_Capped: %d is neither 0 nor 1", o.path, n)
		}
		if s.Kind == stages.Pi || s.Kind == stages.Matrix {
			s.Bytes, s.ID, s.Involved, s.Capped = 0, 0, 0, false // they do not count
		}
		o.done()
		p.Stages = append(p.Stages, s)
	}
	return p
}

// The published numbers of what a group may choose. Ours have names only.
var (
	publishedProcess    = []mam.Process{mam.Baseline, mam.Merge}
	publishedMethods    = []mam.Method{mam.COL, mam.P2P, mam.RMALock, mam.RMALockall}
	publishedStrategies = []mam.Strategy{mam.NonBlocking, mam.Thread, mam.NonBlocking, mam.WaitDrains}
	publishedSpawns     = []mam.Spawn{mam.SpawnAll, mam.SpawnBackground, mam.SpawnSingle, mam.SpawnInter, mam.SpawnMultiple, mam.SpawnParallel}
	publishedPlacement  = map[string]mam.Placement{"compact": mam.Compact, "spread": mam.Spread}

	ourMethods    = []mam.Method{mam.Auto, mam.COL, mam.P2P, mam.RMALock, mam.RMALockall, mam.Pull, mam.InPlace}
	ourStrategies = []mam.Strategy{mam.Auto, mam.Blocking, mam.NonBlocking, mam.Thread, mam.WaitDrains}
	ourSpawns     = append(slices.Clone(publishedSpawns), mam.SpawnSequential)
)

func (r *reader) group(path string, v any) (g Group) {
	o := r.object(path, v)
	g.Iters, g.Procs, g.Factor = o.integer("Iters", mostIters), o.integer("Procs", mostProcs), o.number("FactorS")
	g.Process = choice(o, "Spawn_Method", o.take("Spawn_Method"), publishedProcess, publishedProcess)
	g.Method = choice(o, "Redistribution_Method", o.take("Redistribution_Method"), publishedMethods, ourMethods)
	dist, _ := o.take("Dist").(string)
	if g.Placement = publishedPlacement[strings.TrimSpace(dist)]; g.Placement == 0 {
		r.bad("%s.Dist: %q is neither compact nor spread", path, dist)
	}
	for _, v := range o.strategies("Spawn_Strategy") {
		s := choice(o, "Spawn_Strategy", v, publishedSpawns, ourSpawns)
		if s != mam.SpawnAll {
			g.Spawn |= s
		}
	}
	if g.Spawn == 0 {
		g.Spawn = mam.SpawnAll
	}
	list := o.strategies("Redistribution_Strategy")
	if len(list) != 1 {
		r.bad("%s.Redistribution_Strategy: %d strategies, not one", path, len(list))
	} else {
		g.Strategy = choice(o, "Redistribution_Strategy", list[0], publishedStrategies, ourStrategies)
	}
	o.done()
	return g
}

// choice is a value by its published number or by its name in package mam.
func choice[T interface {
	comparable
	fmt.Stringer
}](o object, key string, v any, published, ours []T) (none T) {
	if n, ok := numberOf(v); ok {
		if i := int(n); float64(i) == n && i >= 0 && i < len(published) {
			return published[i]
		}
	} else if text, ok := v.(string); ok {
		text = strings.ToLower(strings.TrimSpace(text))
		if i := slices.IndexFunc(ours, func(x T) bool { return x.String() == text }); i >= 0 {
			return ours[i]
		}
	}
	var names []string
	for _, x := range ours {
		names = append(names, x.String())
	}
	o.r.bad("%s.%s: %v is none of 0 to %d and %s", o.path, key, v, len(published)-1, strings.Join(names, ", "))
	return none
}

// strategies is a list of numbers, or of them in a text; nothing is [0].
func (o object) strategies(key string) []any {
	switch v := o.take(key).(type) {
	case nil:
		return []any{json.Number("0")}
	case []any:
		if len(v) == 0 {
			return []any{json.Number("0")}
		}
		return v
	case string:
		var list []any
		for item := range strings.SplitSeq(v, listMark) {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		if len(list) == 0 {
			list = append(list, json.Number("0"))
		}
		return list
	default:
		return []any{v}
	}
}

// reader notes all that is wrong with a tree.
type reader struct{ errs []error }

func (r *reader) bad(format string, v ...any) { r.errs = append(r.errs, fmt.Errorf(format, v...)) }

func (r *reader) list(path string, v any) []any {
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > mostList {
		r.bad("%s: not a list of 1 to %d", path, mostList)
		return nil
	}
	return list
}

// object is an object of the tree, of which what was taken is known.
type object struct {
	r    *reader
	path string
	m    map[string]any
	seen map[string]bool
}

func (r *reader) object(path string, v any) object {
	m, ok := v.(map[string]any)
	if !ok {
		r.bad("%s: not an object", cmp.Or(path, "the whole"))
	}
	return object{r, path, m, map[string]bool{}}
}

func (o object) take(key string) any {
	o.seen[key] = true
	return o.m[key]
}

// done refuses keys that nobody has asked for.
func (o object) done() {
	for _, key := range slices.Sorted(maps.Keys(o.m)) {
		if !o.seen[key] {
			o.r.bad("%s: unknown key", at(o.path, key))
		}
	}
}

func at(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// number is a number that must be there.
func (o object) number(key string) float64 {
	n, ok := numberOf(o.take(key))
	if !ok {
		o.r.bad("%s: a number is missing, not %v", at(o.path, key), o.m[key])
	}
	return n
}

// integer is a whole number of 0 to most that must be there; what is behind a point is
// left out, as published.
func (o object) integer(key string, most float64) int {
	n := o.number(key)
	if n < 0 || n > most {
		o.r.bad("%s: %v is not within 0 to %v", at(o.path, key), n, most)
		return 0
	}
	return int(n)
}

// optional is an integer; 0 if it is not there.
func (o object) optional(key string) int {
	if o.seen[key] = true; o.m[key] == nil {
		return 0
	}
	return o.integer(key, mostData)
}

func numberOf(v any) (float64, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	case float64:
		return v, true
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}
