// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"
	"testing"
)

func TestOwners(t *testing.T) {
	for _, c := range []struct {
		owner, own int
		tool, ok   bool
	}{
		{1000, 1000, false, true}, {1000, 1000, true, true},
		{0, 1000, false, true}, {0, 1000, true, true}, {0, 0, false, true},
		{65534, 1000, false, false}, {65534, 1000, true, false},
		{65534, 0, false, false}, {65534, 0, true, true},
	} {
		err := mayTalk(c.owner, c.own, c.tool)
		if (err == nil) != c.ok {
			t.Errorf("socket of %d, process of %d, tool %v: %v", c.owner, c.own, c.tool, err)
		}
		if err != nil {
			for _, uid := range []int{c.owner, c.own} {
				if want := fmt.Sprintf("user %d", uid); !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not name %s", err, want)
				}
			}
		}
	}
}
