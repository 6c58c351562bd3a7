// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Hinted adds to an error of a system limit which limit that is.
func Hinted(err error) error {
	for _, h := range [...]struct {
		errno unix.Errno
		hint  string
	}{
		{unix.EMFILE, "ulimit -n; gompirun needs six descriptors for each process, eight with --output"},
		{unix.EAGAIN, "ulimit -u, or pids.max of the cgroup"},
		{unix.EFBIG, "ulimit -f; the shared memory of each process counts as a file"},
	} {
		if errors.Is(err, h.errno) {
			return fmt.Errorf("%w (see %s)", err, h.hint)
		}
	}
	return err
}
