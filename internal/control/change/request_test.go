// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"strings"
	"testing"
)

// A number beyond the limit is answered with the limit.
func TestRequestNamesItsLimit(t *testing.T) {
	for _, r := range []Request{
		{Kind: Replace, In: []uint32{1}, To: MaxJoin + 1},
		{Kind: Grow, In: []uint32{1}, Join: []int{MaxJoin + 1}},
		{Kind: Add, Join: []int{0}},
	} {
		if err := r.check(); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "1 to 65536 allowed") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
