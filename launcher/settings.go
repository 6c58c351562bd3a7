// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"gompi/collectives/selection"
	"gompi/internal/base/settings"
	"gompi/internal/launch/spawner"
	"gompi/internal/resize/cost"
	"gompi/transport/tuning"
)

// Knob is a setting of the runtime that has an environment variable and a flag of
// gompirun. The launcher gives the values to every process, so that they are equal on all
// ranks; a flag wins over the environment.
type Knob struct {
	Flag    string // without "--"
	Env     string
	Default string // meaning of an unset setting, for the help
	Help    string
	check   func(string) error
	// load checks a value and returns the value for the processes. A setting has either
	// load or check.
	load func(string) (string, error)
}

// Knobs returns all settings, in the order of the help.
func Knobs() []Knob {
	return []Knob{
		{"transport", "GOMPI_TRANSPORT", "shm,tcp", "comma list of the transports to use: shm, tcp", checkTransports, nil},
		{"eager", "GOMPI_EAGER", "by transport", "largest message sent without asking, in bytes; -1: none is", within(settings.Eager), nil},
		{"credit", "GOMPI_CREDIT", "by memory", "fixed number of bytes of unexpected messages kept per peer", within(settings.Credit), nil},
		{"budget", "GOMPI_BUDGET", "by memory", "bytes of unexpected messages kept in all, beyond 1 MiB per peer", within(settings.Budget), nil},
		{"ring", "GOMPI_RING", "by transport", "bytes of shared ring data per peer", within(settings.Ring), nil},
		{"cma", "GOMPI_CMA", "auto", "copy directly between processes: auto or off", oneOf("auto", "off"), nil},
		{"duplex", "GOMPI_DUPLEX", "auto", "short answers in the line of shared memory that brought the question: auto or off", oneOf("auto", "off"), nil},
		{"huge", "GOMPI_HUGE", "auto", "huge pages for buffers that are copied often, and for arrays: auto or off", oneOf("auto", "off"), nil},
		{"check", "GOMPI_CHECK", "0", "1 finds buffers in use by two operations or written meanwhile, ranks whose collective calls differ, and what is left at the end", oneOf("0", "1"), nil},
		{"spin", "GOMPI_SPIN", "by ranks per CPU", "turns of polling before a waiting rank gives up its CPU", within(settings.Spin), nil},
		{"async", "GOMPI_ASYNC", "by ranks per CPU", "1 leaves large nonblocking operations to another CPU at once, 0 only while the rank waits or after a moment", oneOf("0", "1"), nil},
		{"coll", "GOMPI_COLL", "by size", "force algorithms of collectives: comma list such as allreduce=ring", checkForced, nil},
		{"coll-table", "GOMPI_COLL_TABLE", "built in", "file of rules that select algorithms of collectives (gompibench tune writes one)", nil, loaded(shortRules)},
		{"shm-table", "GOMPI_SHM_TABLE", "built in", "file of limits that say which way messages go inside a host, near and far (gompibench tune shm writes one)", nil, loaded(shortThresholds)},
		{"tcp-eager", "GOMPI_TCP_EAGER", "65536", "largest message that a TCP connection takes at once, in bytes", within(settings.TCPEager), nil},
		{"tcp-chunk", "GOMPI_TCP_CHUNK", "2097152", "bytes of a large TCP message between which others get a turn", within(settings.TCPChunk), nil},
		{"mam-process", settings.MamProcess.Env, "by the program", "package mam: which processes a change starts: auto, baseline (all anew), merge", chosen(settings.MamProcess), nil},
		{"mam-spawn", settings.MamSpawn.Env, "by the program", "package mam: how they are started: comma list of " + strings.Join(settings.MamSpawn.Names, ", "), chosen(settings.MamSpawn), nil},
		{"mam-placement", settings.MamPlacement.Env, "by the program", "package mam: on which hosts: auto, spread, compact", chosen(settings.MamPlacement), nil},
		{"mam-method", settings.MamMethod.Env, "by the program", "package mam: how data moves: " + strings.Join(settings.MamMethod.Names, ", "), chosen(settings.MamMethod), nil},
		{"mam-strategy", settings.MamStrategy.Env, "by the program", "package mam: what ranks do meanwhile: " + strings.Join(settings.MamStrategy.Names, ", "), chosen(settings.MamStrategy), nil},
		{"mam-track", settings.MamTrack.Env, "auto", "package mam: whether the kernel is to tell which variable data is written while it moves in the background: auto, off (only data that the program marks moves then)", chosen(settings.MamTrack), nil},
		{"mam-targets", settings.MamTargets.Env, "by the program", "package mam: how many ranks to ask for at the first checkpoint", within(settings.MamTargets), nil},
		{"mam-threads", settings.MamThreads.Env, "by idle CPUs", "package mam: how many threads of a rank move data in the checkpoint in which the others wait", within(settings.MamThreads), nil},
		{"mam-model", settings.MamModel, "built in", "package mam: file with the model of the machine by which auto chooses (gompibench tune redist writes one)", nil, loaded(shortModel)},
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

// within checks a number against a range.
func within(r settings.Range) func(string) error {
	return func(v string) error {
		_, err := r.Parse(v)
		return err
	}
}

// chosen checks names against a choice.
func chosen(c settings.Choice) func(string) error {
	return func(v string) error {
		_, err := c.Parse(v)
		return err
	}
}

func checkForced(v string) error { return selection.DefaultTable().ForceAll(v) }

// loaded reads a file and shortens its text.
func loaded(short func(text string) (string, error)) func(path string) (string, error) {
	return func(path string) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return short(string(text))
	}
}

// shortRules removes the comments from a table of rules.
func shortRules(text string) (string, error) {
	rules, err := selection.ParseRules(text)
	if err != nil {
		return "", err
	}
	short := selection.FormatRules(rules)
	_, err = selection.ParseTable(short)
	return short, err
}

// shortThresholds removes the comments from a table of thresholds.
func shortThresholds(text string) (string, error) {
	t, err := tuning.Parse(text)
	return t.String(), err
}

// shortModel removes the spaces from the model of a machine.
func shortModel(text string) (string, error) {
	m, err := cost.Parse(text)
	if err != nil {
		return "", err
	}
	short, err := json.Marshal(m)
	return string(short), err
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

// settingsHelp returns the text of --help-env.
func settingsHelp() string {
	var b strings.Builder
	for _, k := range Knobs() {
		fmt.Fprintf(&b, "%-16s --%-10s %s (default %s)\n", k.Env, k.Flag, k.Help, k.Default)
	}
	fmt.Fprintf(&b, "\nSet in each process: %s, %s, %s, %s, %s.\n", spawner.EnvRank, spawner.EnvSize, spawner.EnvLocalRank, spawner.EnvLocalSize, spawner.EnvJob)
	return b.String()
}
