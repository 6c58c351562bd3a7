// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"testing"
)

// Every class says what it is, and no two say the same.
func TestClassesHaveTexts(t *testing.T) {
	seen := map[string]Class{}
	for c := OK + 1; c < Reported; c++ {
		s := c.Error()
		if s == fmt.Sprintf("error class %d", uint8(c)) {
			t.Errorf("class %d has no text", uint8(c))
		}
		if was, ok := seen[s]; ok {
			t.Errorf("classes %d and %d are both %q", uint8(was), uint8(c), s)
		}
		seen[s] = c
	}
	if err := fmt.Errorf("why: %w", Closed); !errors.Is(err, Closed) || errors.Is(err, Left) {
		t.Errorf("%v is not of its class alone", err)
	}
	if (*Fault)(nil).Code() != OK || (&Fault{Class: Left}).Code() != Left {
		t.Error("the class of a fault is not its own")
	}
}
