// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"reflect"
	"strings"
	"testing"

	"gompi/internal/cost"
	"gompi/internal/layout"
)

func someRegistry() *registry {
	return &registry{
		Version: registryVersion, Ranks: 3, Config: Config{Method: Pull},
		Settings: []Setting{{"Method", "pull", "code"}},
		Inputs:   inputs{Cores: 2, Hosts: 3, Transport: "shm", Model: &cost.Builtin},
		Data: []entry{
			{Name: "x", Type: "float64", Bytes: 8, Mode: Constant, Rule: layout.Layout{Kind: layout.Rows, N: 2, Weights: []int64{3, 4}}, Shared: "mam x"},
			{Name: "step", Type: "int", Bytes: 8, Replicated: true, One: true, Rule: layout.Layout{N: 1}},
		},
	}
}

// What rank 0 puts newcomers read, and nothing that is none.
func TestRegistryTravels(t *testing.T) {
	r := someRegistry()
	b, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := readRegistry(b)
	if err != nil || !reflect.DeepEqual(got, r) || got.hash() != r.hash() {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, c := range []struct {
		change func(r *registry)
		why    string
	}{
		{func(r *registry) { r.Version++ }, "version 2"},
		{func(r *registry) { r.Ranks = 0 }, "0 ranks"},
		{func(r *registry) { r.Inputs.Cores = 0 }, "0 processors"},
		{func(r *registry) { r.Inputs.Model = &cost.Model{Touch: 1} }, "0 transports"},
		{func(r *registry) { r.Ranks = layout.MostRanks + 1 }, "ranks"},
		{func(r *registry) { r.Config.Method = 99 }, "no method 99"},
		{func(r *registry) { r.Data[0].Name = "" }, "a name of 0 bytes"},
		{func(r *registry) { r.Data[1].Name = "x" }, `"x" twice`},
		{func(r *registry) { r.Data[0].Bytes = 0 }, "elements of 0 bytes"},
		{func(r *registry) { r.Data[0].Bytes = mostElem + 1 }, "elements of"},
		{func(r *registry) { r.Data[0].Mode = 2 }, "mode 2"},
		{func(r *registry) { r.Data[0].Rule.N = 3 }, "2 rows"},
		{func(r *registry) { r.Data[0].One = true }, "one value"},
		{func(r *registry) {
			r.Data[0].Bytes, r.Data[0].Rule = mostElem, layout.Layout{N: layout.MostElems}
		}, "elements of 1048576 bytes"},
		{func(r *registry) { r.Data[1].Shared = "x" }, "lies in memory"},
		{func(r *registry) { r.Data[0].Shared = strings.Repeat("x", mostShared+1) }, "a name of 4097 bytes"},
		{func(r *registry) {
			r.Data[0].Shared, r.Data[0].Rule = "x", layout.Layout{Kind: layout.Cyclic, N: 2, Block: 1}
		}, "cyclic of 2 elements"},
		{func(r *registry) { r.Settings = make([]Setting, 17) }, "version 1"},
	} {
		r := someRegistry()
		c.change(r)
		b, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readRegistry(b); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", b, err, c.why)
		}
	}
	for _, text := range []string{"", "{", `{"Version":1,"Ranks":1,"Else":1}`, "[]"} {
		if _, err := readRegistry([]byte(text)); err == nil {
			t.Errorf("%q is a registry", text)
		}
	}
}

// Whatever came is refused, or is what could have been put: each split can be made.
func FuzzRegistry(f *testing.F) {
	b, _ := someRegistry().encode()
	f.Add(b)
	f.Add([]byte(`{"Version":1,"Ranks":2,"Data":[{"Name":"g","Type":"int","Bytes":8,"Rule":{"kind":6,"n":12,"dims":[3,4]}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRegistry(b)
		if err != nil || r.Ranks > 1<<10 {
			return
		}
		for _, e := range r.Data {
			s, err := e.Rule.Over(r.Ranks)
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for rank := range r.Ranks {
				sum += s.Count(rank)
			}
			if sum != e.Rule.N {
				t.Fatalf("%+v: %d elements", e, sum)
			}
		}
	})
}
