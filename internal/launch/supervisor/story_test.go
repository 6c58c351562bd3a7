// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"strings"
	"testing"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// The story of a job says what each operation under way waits for, and nothing of those
// that are over.
func TestStoryTellsOfChanges(t *testing.T) {
	ops := []protocol.OpReport{
		{Op: protocol.OpBody{Op: 1, State: change.Done}, Kind: change.Grow, Waits: "nothing"},
		{Op: protocol.OpBody{Op: 2, State: change.Adopting}, Kind: change.Shrink, Waits: "the votes of rank 3", For: 1500 * time.Millisecond},
	}
	text := Report("job", nil, ops)
	if want := "operation 2 (shrink), adopting for 1.5 s, waits for the votes of rank 3\n"; !strings.HasSuffix(text, want) || strings.Contains(text, "operation 1") {
		t.Errorf("%q, want %q", text, want)
	}
}
