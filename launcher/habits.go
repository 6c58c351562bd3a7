// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"strings"

	"github.com/spf13/pflag"
)

// What people who come from other launchers type: flags that mean one of ours
// are taken, for the others a line says what to use.

// aliases are spellings of other launchers.
var aliases = map[string]string{
	"machinefile": "hostfile", "hosts": "host", "bind-to": "bind", "map-by": "map", "wd": "wdir",
	"tag-output": "tag", "prepend-rank": "tag", "output-filename": "output", "outdir": "output",
	"report-bindings": "verbose", "npernode": "ppn", "perhost": "ppn", "enable-recovery": "ft",
}

// habitual declares what has another short name elsewhere, and what is accepted
// and means nothing here.
func habitual(s *pflag.FlagSet, o *options, v *flagValues, first bool) {
	hidden := func(name string) { s.MarkHidden(name) }
	s.StringVarP(&v.hostfile, "f", "f", "", "")
	hidden("f")
	if !first {
		return
	}
	s.BoolVarP(&o.Tag, "l", "l", false, "")
	hidden("l")
	s.BoolVarP(&v.version, "V", "V", false, "")
	hidden("V")
	for _, name := range [...]string{"allow-run-as-root", "genvall", "nooversubscribe", "use-hwthread-cpus"} {
		s.BoolVar(&v.ignored, name, false, "")
		hidden(name)
	}
	s.BoolVarP(&v.ignored, "quiet", "q", false, "")
	hidden("quiet")
}

// foreign says what to use in place of a flag that we do not have.
func foreign(name string) (instead string, ok bool) {
	switch name {
	case "mca", "gmca", "pmixmca", "prtemca", "omca", "am", "tune":
		return "there are no MCA parameters: --transport chooses transports, --coll algorithms, gompirun --help-env lists every knob", true
	case "genvlist", "envlist", "envall", "genvnone", "envnone":
		return "the whole environment is passed on: -x NAME=VALUE changes it, env -i in front of gompirun empties it", true
	case "timestamp-output":
		return "gompirun adds no times: gompirun ... | ts (of moreutils) does", true
	case "merge-stderr-to-stdout", "stderr-to-stdout":
		return "use the shell: gompirun ... 2>&1, or with --output: gompirun ... sh -c 'exec ./prog 2>&1'", true
	case "outfile-pattern", "errfile-pattern":
		return "use --output DIR, which writes DIR/rank.N.stdout and DIR/rank.N.stderr", true
	case "rank-by":
		return "ranks are numbered in the order of the command line", true
	case "cpu-set", "cpu-list", "cpus-per-proc", "cpus-per-rank", "rankfile":
		return "--bind core gives each rank its share of the cores; taskset -c 0-3 gompirun ... bounds what all may use", true
	case "npersocket", "bycore", "byslot", "bysocket", "bynode", "bind-to-core", "bind-to-socket":
		return "use -np N and --bind core, numa or none", true
	case "display-map", "display-allocation", "display":
		return "-v prints where each rank runs", true
	case "prefix", "path", "launcher", "launcher-exec", "bootstrap", "iface", "preload-binary", "hostlist":
		return "this version of gompirun starts processes on this host only", true
	case "tv", "debug", "xterm", "gdb", "debugger":
		return "use a wrapper: gompirun -np 4 sh -c '[ $GOMPI_RANK = 0 ] && exec dlv exec ./prog; exec ./prog'", true
	case "disable-auto-cleanup", "continuous":
		return "use --ft: a rank that dies does not end the job", true
	case "s":
		return "use --stdin RANK, all or none", true
	case "c":
		return "use -np", true
	}
	return "", false
}

// instead checks a value of --bind or --map that others have.
func instead(value string) string {
	switch head, _, _ := strings.Cut(strings.ToLower(value), ":"); head {
	case "hwthread", "hwt":
		return "core gives each rank its share of the cores, with all their hardware threads"
	case "socket", "package", "board", "l3cache", "l2cache", "l1cache":
		return "numa is nearest: on most machines a socket is a NUMA node"
	case "ppr":
		return "use -np N, or -N n for n on each host"
	case "core", "slot", "numa", "node":
		return "modifiers (PE=n, OVERSUBSCRIBE, ...) are not there: core divides the cores among the ranks, and more ranks than cores need no flag"
	}
	return ""
}
