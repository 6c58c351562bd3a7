// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gompi/internal/resize/cost"
	"gompi/internal/resize/layout"
)

func someRegistry() *registry {
	return &registry{
		Version: registryVersion, Ranks: 3, Config: Config{Method: Pull},
		Settings: []Setting{{"Method", "pull", "code"}},
		Inputs:   inputs{Cores: 2, Hosts: 3, Transport: "shm", Model: &cost.Builtin},
		Data: []entry{
			{Name: "x", Type: "float64", Bytes: 8, Mode: Constant, Rule: layout.Layout{Kind: layout.Rows, N: 2, Weights: []int64{3, 4}}, Shared: "mam x"},
			{Name: "step", Type: "int", Bytes: 8, Replicated: true, One: true, Rule: layout.Layout{N: 1}},
			{Name: "names", Type: "*mam.names", Bytes: 1, Replicated: true, Encoded: true, Mode: Constant, Rule: layout.Layout{N: maxValue}},
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
		{func(r *registry) { r.Ranks = layout.MaxRanks + 1 }, "ranks"},
		{func(r *registry) { r.Config.Method = 99 }, "no method 99"},
		{func(r *registry) { r.Data[0].Name = "" }, "a name of 0 bytes"},
		{func(r *registry) { r.Data[1].Name = "x" }, `"x" twice`},
		{func(r *registry) { r.Data[0].Bytes = 0 }, "elements of 0 bytes"},
		{func(r *registry) { r.Data[0].Bytes = maxElem + 1 }, "elements of"},
		{func(r *registry) { r.Data[0].Mode = 2 }, "mode 2"},
		{func(r *registry) { r.Data[0].Rule.N = 3 }, "2 rows"},
		{func(r *registry) { r.Data[0].Encoded = true }, "is an encoded value"},
		{func(r *registry) { r.Data[2].Rule.N = maxValue + 1 }, "1073741824 bytes allowed"},
		{func(r *registry) { r.Data[2].Rule.N = -1 }, "-1 elements"},
		{func(r *registry) { r.Data[2].Mode = Variable }, "is an encoded value"},
		{func(r *registry) { r.Data[2].Bytes = 8 }, "units of 8 bytes"},
		{func(r *registry) { r.Data[0].One = true }, "one value"},
		{func(r *registry) {
			r.Data[0].Bytes, r.Data[0].Rule = maxElem, layout.Layout{N: layout.MaxElems}
		}, "elements of 1048576 bytes"},
		{func(r *registry) { r.Data[1].Shared = "x" }, "lies in memory"},
		{func(r *registry) { r.Data[0].Shared = strings.Repeat("x", maxShared+1) }, "a name of 4097 bytes"},
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
		if _, err := readRegistry(packed(text)); err == nil {
			t.Errorf("%q is a registry, compressed", text)
		}
	}
}

func packed(text string) []byte {
	var b bytes.Buffer
	z, _ := flate.NewWriter(&b, flate.BestSpeed)
	io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

// A list of weights is put once, however many data have it; so much more fits than a
// value holds as text. What another process has put may say anything of it.
func TestRegistryOfManyRows(t *testing.T) {
	r := someRegistry()
	w, n := make([]int64, 200_000), int64(0)
	for i := range w {
		w[i] = 40 + int64(i*7919%21)
		n += w[i]
	}
	for i := range 6 {
		r.Data = append(r.Data, entry{Name: fmt.Sprint("rows", i), Type: "float64", Bytes: 8, Rule: layout.Layout{Kind: layout.Rows, N: int64(len(w)), Weights: slices.Clone(w)}},
			entry{Name: fmt.Sprint("entries", i), Type: "int32", Bytes: 4, Mode: Constant, Rule: layout.Layout{Kind: layout.Entries, N: n, Weights: slices.Clone(w)}})
	}
	b, err := r.encode()
	if err != nil || len(b) > 1<<20 {
		t.Fatal(len(b), err)
	}
	got, err := readRegistry(b)
	if err != nil || !reflect.DeepEqual(got, r) || got.hash() != r.hash() {
		t.Fatal("what is read is not what was put: ", err)
	}
	if r.Data[0].WeightsAt != 0 || r.Weights != nil {
		t.Error("to encode has changed it")
	}
	r.Data[3].Rule.Weights = make([]int64, maxText/20+1)
	if !r.mayExceed() {
		t.Error("this does not look as if it were too much")
	}
	if err := r.fits(); err != nil {
		t.Errorf("many short numbers: %v", err)
	}
	for i := range r.Data[3].Rule.Weights {
		r.Data[3].Rule.Weights[i] = layout.MaxElems + int64(i)
	}
	r.Data[4].Rule.Weights = slices.Clone(r.Data[3].Rule.Weights)
	r.Data[4].Rule.Weights[0]++
	if err := r.fits(); err == nil || !strings.Contains(err.Error(), "what describes 15 data has") {
		t.Errorf("too much: %v", err)
	}
	for _, c := range []struct {
		change func(c *registry)
		why    string
	}{
		{func(c *registry) { c.Data[0].WeightsAt = 2 }, "weights 2 of 1 lists"},
		{func(c *registry) { c.Data[0].WeightsAt = -1 }, "weights -1 of 1 lists"},
		{func(c *registry) { c.Data[0].Rule.Weights = []int64{1} }, "weights 1 of 1 lists"},
	} {
		r := someRegistry().compact()
		c.change(r)
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readRegistry(packed(string(text))); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", text, err, c.why)
		}
	}
	if _, err := readRegistry(packed(strings.Repeat(" ", maxText+1) + "{}")); err == nil {
		t.Error("there is no limit")
	}
}

// Whatever came is refused, or is what could have been put: each split can be made.
func FuzzRegistry(f *testing.F) {
	b, _ := json.Marshal(someRegistry().compact())
	f.Add(b)
	f.Add([]byte(`{"Version":1,"Ranks":2,"Data":[{"Name":"g","Type":"int","Bytes":8,"Rule":{"kind":6,"n":12,"dims":[3,4]}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readRegistry(b) // which is hardly ever compressed text
		r, err := readRegistry(packed(string(b)))
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

// The length that another process tells of a value is held against its bound before there
// is memory for it.
func TestParseHeader(t *testing.T) {
	for _, c := range []struct {
		head []byte
		n    int64
		why  string
	}{
		{[]byte{0, 0, 0, 0, 0, 0, 0, 0}, 0, ""},
		{[]byte{5, 1, 0, 0, 0, 0, 0, 0}, 261, ""},
		{[]byte{0, 0, 0, 0x40, 0, 0, 0, 0}, maxValue, ""},
		{[]byte{1, 0, 0, 0x40, 0, 0, 0, 0}, 0, "1073741825 bytes, at most 1073741824 allowed"},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 0, "9223372036854775808 bytes"},
		{[]byte{0, 0, 0}, 0, "a header of 3 bytes, not 8"},
		{nil, 0, "a header of 0 bytes"},
		{bytes.Repeat([]byte{255}, valueHeader), 0, errNotEncoded.Error()},
	} {
		n, err := parseHeader(c.head)
		if n != c.n || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v: %d, %v; want %d, %q", c.head, n, err, c.n, c.why)
		}
	}
}
