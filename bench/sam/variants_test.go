// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"gompi/bench/stages"
	"gompi/mam"
)

func replaced(pairs ...string) string {
	text := one
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			panic(pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// TestVariants: the Cartesian product, ADR in per cent, FactorS beside Procs, neighbours
// of one size, strategies that stand together.
func TestVariants(t *testing.T) {
	f := parsed(t, replaced(
		`"SDR": 500000.0`, `"SDR": "1000:3000"`, `"ADR": 300`, `"ADR": "0:25"`,
		`"Procs": 2, "FactorS": 1`, `"Procs": "2:4", "FactorS": "1:0.5"`,
		`"Spawn_Strategy": [1, 2]`, `"Spawn_Strategy": "1,2:0"`))
	if want := []string{"general.ADR", "general.SDR", "groups[0].Procs", "groups[1].Spawn_Strategy"}; !slices.Equal(f.Axes, want) {
		t.Fatalf("axes %v", f.Axes)
	}
	// 2 x 2 x 2 x 2, half of them with 4 ranks before 4.
	if len(f.Variants) != 8 || f.Equal != 8 || len(f.Refused) != 0 {
		t.Fatalf("%d variants, %d equal, refused %v", len(f.Variants), f.Equal, f.Refused)
	}
	type row struct {
		sdr, adr int64
		spawn    mam.Spawn
	}
	both := mam.SpawnBackground | mam.SpawnSingle
	want := []row{
		{1000, 0, both}, {1000, 0, mam.SpawnAll}, {3000, 0, both}, {3000, 0, mam.SpawnAll},
		{750, 250, both}, {750, 250, mam.SpawnAll}, {2250, 750, both}, {2250, 750, mam.SpawnAll},
	}
	keys := map[string]bool{}
	for i, v := range f.Variants {
		c := v.Config
		if got := (row{c.SDR, c.ADR, c.Groups[1].Spawn}); got != want[i] || v.Index != i || c.Groups[0].Procs != 2 || c.Groups[0].Factor != 1 {
			t.Errorf("variant %d: %+v, groups %+v", i, got, c.Groups)
		}
		keys[c.Key()] = true
	}
	if len(keys) != 8 {
		t.Errorf("%d keys", len(keys))
	}
	if got := f.Variants[1].Label(f.Axes); got != "2->4 ADR=0 SDR=1000 spawn all" {
		t.Errorf("label %q", got)
	}
	// FactorS goes with Procs by index.
	f = parsed(t, replaced(`"Procs": 2, "FactorS": 1`, `"Procs": "2 : 8:1", "FactorS": "1:0.25 :2"`, `"ADR": 300`, `"ADR": 100`))
	var got [][2]float64
	for _, v := range f.Variants {
		got = append(got, [2]float64{float64(v.Config.Groups[0].Procs), v.Config.Groups[0].Factor})
		if v.Config.SDR != 0 || v.Config.ADR != 500000 {
			t.Errorf("%d and %d bytes", v.Config.SDR, v.Config.ADR)
		}
	}
	if !reflect.DeepEqual(got, [][2]float64{{2, 1}, {8, 0.25}, {1, 2}}) {
		t.Errorf("%v", got)
	}
	// FactorS alone is an axis like others; alternatives in stages are, too.
	f = parsed(t, replaced(`"FactorS": 0.5`, `"FactorS": "0.5:1"`, `"ADR": 300`, `"ADR": 0`, `"Stage_Bytes": 1000`, `"Stage_Bytes": "10:20"`))
	if want := []string{"groups[1].FactorS", "phases[0].stages[1].Stage_Bytes"}; !slices.Equal(f.Axes, want) || len(f.Variants) != 4 || f.Variants[3].Config.Phases[0].Stages[1].Bytes != 20 {
		t.Errorf("axes %v, %d variants", f.Axes, len(f.Variants))
	}
	if got := parsed(t, replaced(`"pull"`, `"0:2:pull"`, `"3"`, `"1:3"`, `"Spawn_Method": 0`, `"Spawn_Method": "0:1"`, `"ADR": 300`, `"ADR": 50`)).Variants; got[3].Label([]string{"groups[0].Spawn_Method", "groups[1].Redistribution_Method", "groups[1].Redistribution_Strategy"}) != "2->4 baseline rma-lock wd" {
		t.Errorf("label %q", got[3].Label([]string{"groups[0].Spawn_Method", "groups[1].Redistribution_Method", "groups[1].Redistribution_Strategy"}))
	}
	// What does not go together is left out, and said.
	f = parsed(t, replaced(`"pull"`, `"0:2"`, `"3"`, `"0:3"`, `"ADR": 300`, `"ADR": 50`))
	if len(f.Variants) != 3 || len(f.Refused) != 1 || !strings.Contains(f.Refused[0].Error(), "rma-lock") {
		t.Errorf("%d variants, refused %v", len(f.Variants), f.Refused)
	}
}

func TestVariantErrors(t *testing.T) {
	for _, c := range []struct {
		pairs []string
		want  string
	}{
		{[]string{`"Procs": 2,`, `"Procs": "2:8",`}, "groups[0].FactorS: as many alternatives as Procs are needed"},
		{[]string{`"Procs": 2, "FactorS": 1`, `"Procs": "2:8", "FactorS": "1:2:3"`}, "groups[0].FactorS: 3 alternatives, and 2 of Procs"},
		{[]string{`"SDR": 500000.0`, `"SDR": "1:2"`}, "general.ADR: 300 is no percentage"},
		{[]string{`"SDR": 500000.0`, `"SDR": "1:2"`, `"ADR": 300`, `"ADR": "101:200"`}, "general.ADR: 101 is no percentage"},
		{[]string{`"SDR": 500000.0`, `"SDR": "1::2"`}, "empty alternative"},
		{[]string{`"Total_Phases": 2`, `"Total_Phases": "2:2"`}, "a count has no alternatives"},
		{[]string{`"SDR": 500000.0`, `"SDR": "` + strings.Repeat("1:", 400) + `1"`, `"Datasize": 4`, `"Datasize": "` + strings.Repeat("4:", 400) + `4"`}, "more than 100000 combinations"},
		{[]string{`"Procs": 4, "FactorS": 0.5`, `"Procs": "2:2", "FactorS": "1:1"`, `"ADR": 300`, `"ADR": 0`}, "in all of 2 combinations"},
	} {
		if f, err := Parse([]byte(replaced(c.pairs...))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, %+v", c.pairs, err, f)
		}
	}
}

const oldINI = `; the form without phases
[general]
Total_Resizes=1
Total_Stages=2
Granularity=100000
SDR=1000.0
ADR=0.0
; end [general]
[stage0]
Stage_Type=0
Stage_Bytes=0
Stage_Time=0.01235
;end [stage0]
[stage1]
Stage_Type=3:4
Stage_Bytes=8
Stage_Time=0
[resize0]
Iters=20
Procs=2
FactorS=1
Dist=compact
Redistribution_Method=0
Redistribution_Strategy=0
Spawn_Method=0
Spawn_Strategy=0
[resize1]
Iters=30
Procs=4
FactorS=0.5
Dist=spread
Redistribution_Method=1
Redistribution_Strategy=1
Spawn_Method=1
Spawn_Strategy=0,1
[resize2]
Iters=99
`

const newINI = `[general]
Total_Phases=2
SDR=100
ADR=200
Datasize=2
Rigid=1
Capture_Method=1
[phase0]
Total_Iters=2
Total_Stages=2
[phase0.stage0]
Stage_Type=3
Stage_Bytes=8
Stage_Identifier=4
Stage_Time=0
[phase0.stage1]
Stage_Type=4
Stage_Bytes=8
Stage_Identifier=4
Stage_Time=0
[phase1]
Total_Iters=1
Total_Stages=1
[phase1.stage0]
Stage_Type=8
Stage_Bytes=8
Stage_Time=0
[resize0]
Iters=1
Procs=1
FactorS=1
Dist=compact
Redistribution_Method=0
Redistribution_Strategy=3
Spawn_Method=1
Spawn_Strategy=1
`

// TestINI: both forms of the original's older files.
func TestINI(t *testing.T) {
	f := parsed(t, oldINI)
	if len(f.Variants) != 2 || f.Variants[0].Config.Iterations() != 50 {
		t.Fatalf("%d variants of %d iterations", len(f.Variants), f.Variants[0].Config.Iterations())
	}
	for i, kind := range []stages.Kind{stages.Bcast, stages.Allgather} {
		c := f.Variants[i].Config
		if s := c.Phases[0].Stages; s[1].Kind != kind || s[0].Kind != stages.Pi || s[0].Granularity != 100000 || s[0].Seconds != 0.01235 {
			t.Errorf("stages %+v", s)
		}
		if g := c.Groups[1]; c.SDR != 1000 || g.Method != mam.P2P || g.Strategy != mam.Thread || g.Spawn != mam.SpawnBackground || g.Placement != mam.Spread {
			t.Errorf("%+v", c)
		}
	}
	c := parsed(t, newINI).Variants[0].Config
	if len(c.Phases) != 2 || c.Phases[0].Stages[1].Kind != stages.Wait || c.Phases[1].Iters != 1 || c.ADR != 200 || c.Datasize != 2 || c.Capture != Mean || !c.Rigid {
		t.Errorf("%+v", c)
	}
	for _, c := range []struct{ old, with, want string }{
		{"[resize1]", "[resize7]", "no section [resize1]"},
		{"[stage1]", "[stage0]", `another section "stage0"`},
		{"Stage_Type=3:4", "Stage_Type=3:8", "no Stage_Type 8"},
		{"Total_Stages=2", "Total_Stages=x", "Total_Stages=x is no count"},
		{"Procs=2", "Procs", "neither a section nor"},
		{"[general]", "[general", "is no section"},
		{"[general]", "[other]", "no section [general]"},
		{"SDR=1000.0", "SDX=1000.0", "general.SDX: unknown key"},
	} {
		if _, err := Parse([]byte(strings.Replace(oldINI, c.old, c.with, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.with, err)
		}
	}
}

// TestCG: what comes along is the study's matrix, as far as this machine has processors.
func TestCG(t *testing.T) {
	f := parsed(t, string(CG))
	if len(f.Variants) != 36 || f.Equal != 18 || len(f.Refused) != 0 {
		t.Errorf("%d variants, %d equal, refused %v", len(f.Variants), f.Equal, f.Refused)
	}
	for _, v := range f.Variants {
		if s := v.Config.Phases[0].Stages; len(s) != 4 || s[0].Kind != stages.Pi || s[1].Kind != stages.Allreduce || s[2].Kind != stages.Allreduce || s[3].Kind != stages.Allgather {
			t.Errorf("%+v", s)
		}
		if v.Config.SDR+v.Config.ADR != 256<<20 {
			t.Errorf("%d and %d bytes", v.Config.SDR, v.Config.ADR)
		}
	}
}
