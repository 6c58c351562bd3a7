// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gompi/bench/stages"
	"gompi/mam"
)

// one is a configuration without alternatives, in the published form.
const one = `{
 "general": {"Total_Resizes": 1, "Total_Phases": 2, "SDR": 500000.0, "ADR": 300, "Datasize": 4, "Rigid": 1, "Capture_Method": 2},
 "phases": [
  {"Total_Iters": 3, "Total_Stages": 3, "stages": [
   {"Stage_Type": 10, "Stage_Bytes": 0, "Stage_Involved_Procs": 1, "Stage_Time": 4.0, "Granularity": 9},
   {"Stage_Type": 5, "Stage_Bytes": 1000, "Stage_Time": 0},
   {"Stage_Type": "0", "Stage_Bytes": 77, "Granularity": 10000, "Stage_Time": 1.5}]},
  {"Total_Iters": 1, "Total_Stages": 1, "stages": [{"Stage_Type": 8, "Stage_Bytes": 8, "Stage_Time": 1, "Stage_Time_Capped": 1, "Granularity": 2}]}],
 "groups": [
  {"Iters": 5, "Procs": 2, "FactorS": 1, "Dist": "compact", "Redistribution_Method": 0, "Redistribution_Strategy": [0], "Spawn_Method": 0, "Spawn_Strategy": [0]},
  {"Iters": 10, "Procs": 4, "FactorS": 0.5, "Dist": "spread", "Redistribution_Method": "pull", "Redistribution_Strategy": "3", "Spawn_Method": "merge", "Spawn_Strategy": [1, 2]}]
}`

func parsed(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse(t *testing.T) {
	f := parsed(t, one)
	want := &Config{
		SDR: 500000, ADR: 300, Datasize: 4, Rigid: true, Capture: Median,
		Phases: []Phase{
			{3, []stages.Stage{
				{Kind: stages.Read, Seconds: 4, Granularity: 9, Involved: 1}, {Kind: stages.Bcast, Bytes: 1000},
				{Kind: stages.Pi, Seconds: 1.5, Granularity: 10000}, // bytes of what computes do not count
			}},
			{1, []stages.Stage{{Kind: stages.Allreduce, Bytes: 8, Seconds: 1, Granularity: 2, Capped: true}}},
		},
		Groups: []Group{
			{5, 2, 1, mam.Baseline, mam.SpawnAll, mam.Compact, mam.COL, mam.NonBlocking},
			{10, 4, 0.5, mam.Merge, mam.SpawnBackground | mam.SpawnSingle, mam.Spread, mam.Pull, mam.WaitDrains},
		},
	}
	if len(f.Variants) != 1 || len(f.Axes) != 0 || !reflect.DeepEqual(f.Variants[0].Config, want) {
		t.Fatalf("%+v", f.Variants[0].Config)
	}
	c := f.Variants[0].Config
	if c.Iterations() != 4 || c.Sizes() != "2->4" || c.module(&c.Groups[1]).Strategy != mam.WaitDrains {
		t.Errorf("%d, %s, %+v", c.Iterations(), c.Sizes(), c.module(&c.Groups[1]))
	}
	key := c.Key()
	if c.ADR = 0; c.module(&c.Groups[1]).Strategy != mam.Blocking || c.Key() == key || len(key) != 16 {
		t.Errorf("without ADR: %+v, %s, %s", c.module(&c.Groups[1]), key, c.Key())
	}
	// Every published number of a method and a strategy.
	for i, want := range []mam.Method{mam.COL, mam.P2P, mam.RMALock, mam.RMALockall} {
		text := strings.Replace(strings.Replace(one, `"pull"`, fmt.Sprint(i), 1), `"3"`, `"1"`, 1)
		if g := parsed(t, text).Variants[0].Config.Groups[1]; g.Method != want || g.Strategy != mam.Thread {
			t.Errorf("method %d: %+v", i, g)
		}
	}
	for i, want := range []mam.Strategy{mam.NonBlocking, mam.Thread, mam.NonBlocking, mam.WaitDrains} {
		if g := parsed(t, strings.Replace(one, `"3"`, fmt.Sprintf("[%d]", i), 1)).Variants[0].Config.Groups[1]; g.Strategy != want {
			t.Errorf("strategy %d: %+v", i, g)
		}
	}
}

// TestRules: what the published rules refuse.
func TestRules(t *testing.T) {
	for _, c := range []struct{ old, with, want string }{
		{`"Total_Resizes": 1`, `"Total_Resizes": 2`, "Total_Resizes is 2, and there are 2 groups"},
		{`"Total_Phases": 2`, `"Total_Phases": 1`, "Total_Phases is 1, and there are 2 phases"},
		{`"Total_Stages": 3`, `"Total_Stages": 4`, "phases[0].Total_Stages is 4"},
		{`"Total_Phases": 2, `, ``, "general.Total_Phases: a number is missing"},
		{`"SDR": 500000.0`, `"SDR": -1`, "general.SDR: -1"},
		{`"SDR": 500000.0`, `"SDR": "many"`, "general.SDR: a number is missing, not many"},
		{`"Datasize": 4`, `"Datasize": 3`, "elements of 3 bytes"},
		{`"Rigid": 1`, `"Rigid": 2`, "general.Rigid: 2"},
		{`"Capture_Method": 2`, `"Capture_Method": 3`, "general.Capture_Method: 3"},
		{`"Total_Iters": 3`, `"Total_Iters": 0`, "phases[0].Total_Iters: 0"},
		{`"Stage_Type": 5`, `"Stage_Type": 11`, "no stage type 11"},
		{`"Granularity": 10000, `, ``, "granularity of at least 1"},
		{`"Stage_Time": 1.5`, `"Stage_Time": 0`, "needs a time above 0"},
		{`"Stage_Bytes": 1000, `, `"Stage_Bytes": 0, `, "neither bytes nor a time"},
		{`"Stage_Bytes": 1000, `, ``, "phases[0].stages[1].Stage_Bytes: a number is missing"},
		{`"Stage_Type": 5`, `"Stage_Type": 3`, "identifier 0"},
		{`"Stage_Type": 5`, `"Stage_Identifier": 1, "Stage_Type": 4`, "nothing before it has identifier 1"},
		{`"Stage_Time_Capped": 1`, `"Stage_Time_Capped": 2`, "Stage_Time_Capped: 2"},
		{`"Stage_Time_Capped": 1`, `"Stage_TimeCapped": 1`, "stages[0].Stage_TimeCapped: unknown key"},
		{`"Stage_Involved_Procs": 1`, `"Stage_Involved_Procs": -1`, "Stage_Involved_Procs: -1"},
		{`"Iters": 5`, `"Iters": 0`, "groups[0].Iters: 0"},
		{`"Procs": 2`, `"Procs": 0`, "groups[0].Procs: 0"},
		{`"FactorS": 1`, `"FactorS": -1`, "groups[0].FactorS: -1"},
		{`"compact"`, `"far"`, `groups[0].Dist: "far"`},
		{`"Redistribution_Method": 0`, `"Redistribution_Method": 4`, "groups[0].Redistribution_Method: 4 is none of 0 to 3"},
		{`"Redistribution_Method": 0`, `"Redistribution_Method": 2`, "groups[0].Redistribution_Strategy: method rma-lock"},
		{`"pull"`, `"push"`, "push is none of"},
		{`"Redistribution_Strategy": [0]`, `"Redistribution_Strategy": [0, 1]`, "2 strategies, not one"},
		{`"Spawn_Strategy": [1, 2]`, `"Spawn_Strategy": [5, 2]`, "does not go with parallel"},
		{`"Spawn_Strategy": [1, 2]`, `"Spawn_Strategy": [4, 5]`, "does not go with parallel"},
		{`"Spawn_Method": 0`, `"Spawn_Method": 2`, "groups[0].Spawn_Method: 2"},
		{`"Procs": 4`, `"Procs": 2`, "neighbouring groups are of one size"},
		{`"groups": [`, `"groups": {}, "more": [`, "groups: not a list"},
		{`"general": {`, `"other": {`, "general: not an object"},
		{`}]}],`, `}]}]`, "JSON: "},
	} {
		text := strings.Replace(one, c.old, c.with, 1)
		if text == one {
			t.Fatalf("no %s", c.old)
		}
		if f, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %+v", c.with, err, f)
		}
	}
	for _, text := range []string{"", "[]", "null", "{}", one + "{}", "[general", "[general]\nx"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.10q is taken", text)
		}
	}
}

// FuzzParse: whatever is in a file, there is an answer, and what is taken can be run.
func FuzzParse(f *testing.F) {
	f.Add([]byte(one))
	f.Add(CG)
	f.Add([]byte(oldINI))
	f.Add([]byte(newINI))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse(text)
		if err != nil {
			return
		}
		for _, v := range file.Variants {
			if err := v.Config.Check(); err != nil || v.Config.equalNeighbours() {
				t.Errorf("%+v: %v", v.Config, err)
			}
		}
	})
}
