// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"fmt"
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
