// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"os"
)

// Main is gompirun: args is its command line without the program's name. It
// returns the exit status. Call it once, from main, in a process that does
// nothing else: it handles signals, starts children and needs the standard
// descriptors. It starts its own program again with a first argument of its
// own, so a program that is not gompirun must pass that to Main too (see
// IsGuardian).
func Main(args []string) int {
	if IsGuardian(args) {
		return guard(os.Stdin)
	}
	o, err := parse(args, os.Getenv)
	if help := errHelp(""); errors.As(err, &help) {
		if writeAll(1, []byte(help)) != nil {
			return exitFailure
		}
		return 0
	}
	if err != nil {
		say("%v", err)
		if isUsage(err) {
			writeAll(2, []byte("Try gompirun --help.\n"))
		}
		return exitFailure
	}
	for _, w := range o.warnings {
		say("%s", w)
	}
	h, err := newHead(o)
	if err != nil {
		say("%v", hinted(err))
		return exitFailure
	}
	return h.run()
}

// IsGuardian reports whether args ask for the helper process of a gompirun.
func IsGuardian(args []string) bool { return len(args) == 1 && args[0] == guardianArg }
