// SPDX-License-Identifier: Apache-2.0

package fault

import "fmt"

// Rollback is the cause of a fault over process sets that a change would have
// made, when that change was rolled back. Its value is the number of the operation.
// A communicator over such sets is revoked, or cannot be made. errors.Is finds the
// class RolledBack.
type Rollback uint32

func (u Rollback) Error() string {
	return fmt.Sprintf("its process sets belong to change %d, which was rolled back", uint32(u))
}

// Is makes errors.Is(err, RolledBack) work.
func (u Rollback) Is(target error) bool { return target == error(RolledBack) }
