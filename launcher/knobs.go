// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"strconv"
	"strings"
)

// Knob is a setting of the runtime that is an environment variable and a flag
// of gompirun. The head hands the values to every process, so that they are
// equal on all ranks; a flag wins over the environment.
type Knob struct {
	Flag    string // without "--"
	Env     string
	Default string // what an unset knob means, for the help
	Help    string
	check   func(string) error
}

// Knobs lists every knob, in the order of the help.
func Knobs() []Knob {
	return []Knob{
		{"transport", "GOMPI_TRANSPORT", "shm,tcp", "comma list of the transports to use: shm, tcp", checkTransports},
		{"eager", "GOMPI_EAGER", "by transport", "largest message sent without asking, in bytes", checkBytes},
		{"credit", "GOMPI_CREDIT", "1048576", "bytes of unexpected messages kept per peer", checkBytes},
		{"ring", "GOMPI_RING", "by transport", "bytes of shared ring data per peer", checkBytes},
		{"cma", "GOMPI_CMA", "auto", "copy directly between processes: auto or off", oneOf("auto", "off")},
		{"huge", "GOMPI_HUGE", "auto", "huge pages for buffers that are copied often: auto or off", oneOf("auto", "off")},
		{"check", "GOMPI_CHECK", "0", "1 checks for buffers in use by two operations", oneOf("0", "1")},
		{"spin", "GOMPI_SPIN", "by ranks per CPU", "turns of polling before a waiting rank gives up its CPU", checkCount},
		{"coll", "GOMPI_COLL", "by size", "force algorithms of collectives: comma list such as allreduce=ring", checkNothing},
		{"tcp-eager", "GOMPI_TCP_EAGER", "65536", "largest message that a TCP connection takes at once, in bytes", checkBytes},
		{"tcp-chunk", "GOMPI_TCP_CHUNK", "2097152", "bytes of a large TCP message between which others get a turn", checkBytes},
	}
}

func checkTransports(v string) error {
	for name := range strings.SplitSeq(v, ",") {
		switch name {
		case "shm", "tcp":
		case "inproc":
			return fmt.Errorf("inproc joins ranks that are goroutines of one process (package mpitest); gompirun starts processes: use shm")
		default:
			return fmt.Errorf("no transport is called %q (there are shm and tcp)", name)
		}
	}
	return nil
}

func checkBytes(v string) error {
	if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of bytes", v)
	}
	return nil
}

// checkNothing: the ranks check it.
func checkNothing(string) error { return nil }

func checkCount(v string) error {
	if n, err := strconv.ParseInt(v, 10, 32); err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of turns", v)
	}
	return nil
}

func oneOf(values ...string) func(string) error {
	return func(v string) error {
		for _, w := range values {
			if v == w {
				return nil
			}
		}
		return fmt.Errorf("%q is not %s", v, strings.Join(values, " or "))
	}
}

// knobHelp is the answer to --help-env.
func knobHelp() string {
	var b strings.Builder
	for _, k := range Knobs() {
		fmt.Fprintf(&b, "%-16s --%-10s %s (default %s)\n", k.Env, k.Flag, k.Help, k.Default)
	}
	return b.String()
}
