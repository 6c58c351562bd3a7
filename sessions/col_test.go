// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"fmt"
	"reflect"
	"testing"

	"gompi/internal/control/protocol"
	"gompi/internal/resize/col"
	"gompi/sessions"
)

// What can be said fits into a request.
func TestCOLFits(t *testing.T) {
	if col.MaxBytes != protocol.MaxCOL {
		t.Errorf("a COL has up to %d bytes, a request carries %d", col.MaxBytes, protocol.MaxCOL)
	}
}

func ExampleCOL() {
	cost, err := sessions.ParseCOLExpr("0.15 + 2.5/min(p,q)")
	if err != nil {
		fmt.Println(err)
		return
	}
	c := sessions.COL{
		Model: &sessions.COLModel{Kind: "fitted", Points: []sessions.COLPoint{{P: 4, Seconds: 0.275}, {P: 8, Seconds: 0.15}}},
		Min:   2, Max: 64, Cost: cost,
	}
	text, err := c.Encode()
	fmt.Println(string(text), err)
	fmt.Println(c.Worth(8, 16, 1), c.Worth(8, 16, 60)) // does it pay within a second, a minute?
	// Output:
	// {"version":1,"model":{"kind":"fitted","points":[{"p":4,"seconds":0.275},{"p":8,"seconds":0.15}]},"min":2,"max":64,"cost":"0.15 + 2.5/min(p,q)"} <nil>
	// false true
}

// A COL of the public package has every field and the JSON form of the internal one.
func TestCOLForms(t *testing.T) {
	for _, x := range []struct{ public, internal any }{
		{sessions.COL{}, col.COL{}}, {sessions.COLModel{}, col.Model{}}, {sessions.COLPoint{}, col.Point{}},
	} {
		public, internal := reflect.TypeOf(x.public), reflect.TypeOf(x.internal)
		for _, f := range reflect.VisibleFields(internal) {
			g, ok := public.FieldByName(f.Name)
			if f.IsExported() && (!ok || g.Tag != f.Tag || g.Type.Kind() != f.Type.Kind()) {
				t.Errorf("%v has the field %s %v `%s`, %v has %v `%s`", internal, f.Name, f.Type, f.Tag, public, g.Type, g.Tag)
			}
		}
	}
	for _, text := range []string{
		`{"version":1,"model":{"kind":"table","points":[{"p":1,"seconds":4},{"p":2,"seconds":2.5}]},"min":1,"max":8,"pref":4,"sizes":[1,2,4,8],"invalid":[3],"power_of_two":true,"delta":1,"factor":2,"mapping":"2:node","priority":3,"cost":"1+p*q","hysteresis":0.1,"settle":5,"remaining":100}`,
		`{"version":1,"model":{"kind":"amdahl","serial":1,"parallel":2}}`,
		`{"version":1,"model":{"kind":"linear","slope":1,"offset":2,"unit":3}}`,
		`{"version":1,"model":{"kind":"expression","time":"4/p"}}`,
	} {
		c, err := sessions.ParseCOL([]byte(text))
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := c.Encode(); err != nil || string(got) != text {
			t.Errorf("%s, %v, want %s", got, err, text)
		}
	}
}
