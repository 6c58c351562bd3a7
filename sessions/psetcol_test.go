// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"reflect"
	"testing"

	"gompi/mpi"
)

// What an info says for a resource manager is a COL of typed values: False is false, and
// an expression is an error, not run.
func TestCOLOfInfo(t *testing.T) {
	if text, err := colOf(mpi.NewInfo(ProcsAdd, "2", ProcsMax, "8", "mpi_hint", "x")); text != nil || err != nil {
		t.Errorf("nothing said: %s, %v", text, err)
	}
	for _, x := range []struct {
		info *mpi.Info
		want COL
	}{
		{mpi.NewInfo(COLPriority, "3", ProcsMin, "2", ProcsMax, "8", ProcsPref, "4"), COL{Version: 1, Priority: 3, Min: 2, Max: 8, Pref: 4}},
		{mpi.NewInfo(COLParams, "power_of_two:False:bool,factor:2:int,mapping:1:node:string"), COL{Version: 1, Factor: 2, Mapping: "1:node"}},
		{mpi.NewInfo(COLParams, "power_of_two:True:bool"), COL{Version: 1, PowerOfTwo: true}},
		{
			mpi.NewInfo(COLModelKind, "Amdahl()", COLParams, "serial:0.25:float,parallel:3:int"),
			COL{Version: 1, Model: &COLModel{Kind: "amdahl", Serial: 0.25, Parallel: 3}},
		},
		{
			mpi.NewInfo(COLText, `{"version":1,"priority":7,"model":{"kind":"table","points":[{"p":1,"seconds":2}]}}`, COLMeasured, "p:4:int,iteration_time:0.5:float"),
			COL{Version: 1, Priority: 7, Model: &COLModel{Kind: "table", Points: []COLPoint{{P: 1, Seconds: 2}, {P: 4, Seconds: 0.5}}}},
		},
	} {
		text, err := colOf(x.info)
		if err != nil {
			t.Errorf("%v: %v", x.info, err)
			continue
		}
		if c, err := ParseCOL(text); err != nil || !reflect.DeepEqual(*c, x.want) {
			t.Errorf("%v: %s, %v", x.info, text, err)
		}
	}
	for _, info := range []*mpi.Info{
		mpi.NewInfo(COLParams, "power_of_two:Falsch:bool"), mpi.NewInfo(COLParams, "factor:2"), mpi.NewInfo(COLParams, "factor:2.5:int"),
		mpi.NewInfo(COLParams, "serial:NaN:float"), mpi.NewInfo(COLParams, "serial:1:list"), mpi.NewInfo(COLParams, ":1:int"),
		mpi.NewInfo(COLModelKind, "DefaultReplaceModel()"), mpi.NewInfo(COLModelKind, "__import__('os').system('true')"),
		mpi.NewInfo("output_space_generator", "partial(generator, num_max=8)"), mpi.NewInfo(COLPriority, "high"),
		mpi.NewInfo(COLText, "{}"), mpi.NewInfo(COLText, `{"version":1,"eval":"1"}`), mpi.NewInfo(COLMeasured, "p:4:int"),
		mpi.NewInfo(COLModelKind, "amdahl", COLParams, "speed:1:float"),
	} {
		if text, err := colOf(info); err == nil {
			t.Errorf("%v is %s", info, text)
		}
	}
	if _, err := requestOf(PSetOpReplace, mpi.NewInfo(COLParams, "power_of_two:0:bool")); err == nil {
		t.Error("a request with it is taken")
	}
}
