// SPDX-License-Identifier: Apache-2.0

package fault

import "fmt"

// Undone is why a communicator was revoked, or could not be made: it is over sets of a
// change, the operation of this number, that was rolled back. It is of class
// RolledBack.
type Rollback uint32

func (u Rollback) Error() string {
	return fmt.Sprintf("it is over process sets that change %d would have made, which was rolled back", uint32(u))
}

// Is makes errors.Is(err, RolledBack) work.
func (u Rollback) Is(target error) bool { return target == error(RolledBack) }
