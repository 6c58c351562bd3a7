// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"syscall"
)

// hinted is an error whose text names a system limit.
type hinted struct{ error }

func (e *hinted) Unwrap() error { return e.error }

// Hinted adds the name of the limit to an error about a system limit of gompirun, once.
func Hinted(err error) error {
	if h := (*hinted)(nil); errors.As(err, &h) {
		return err
	}
	for _, h := range [...]struct {
		errno syscall.Errno
		hint  string
	}{
		{syscall.EMFILE, "ulimit -n; gompirun needs six descriptors for each process, eight with --output"},
		{syscall.EAGAIN, "ulimit -u, or pids.max of the cgroup"},
		{syscall.EFBIG, "ulimit -f; the shared memory of each process counts as a file"},
	} {
		if errors.Is(err, h.errno) {
			return &hinted{fmt.Errorf("%w (see %s)", err, h.hint)}
		}
	}
	return err
}
