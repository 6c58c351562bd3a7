// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// foreignFlag is a flag of other launchers: Open MPI 4 and 5, MPICH (Hydra), Intel MPI,
// PRRTE (prterun, prun) and srun. It is accepted if it has a meaning here, and otherwise
// refused with a hint. docs/running.md has the table too.
type foreignFlag struct {
	names string // without dashes, separated by spaces
	words int    // number of values that follow it; a value after = is always taken
	// as is its translation into flags of gompirun, with $1 for its value; noEffect: the
	// flag is ignored.
	as string
	// take translates a value, or returns why it is refused.
	take func(value string) (ours []string, refused string)
	// say is for the documentation: a remark on as, or for a flag that is refused (as and
	// take are empty) the hint.
	say string
}

// noEffect marks a flag that asks for the default behaviour.
const noEffect = "none"

const batch = "an option of the batch system: give it to salloc or sbatch, and start gompirun inside"
const oneHost = "this version of gompirun starts processes on this host only"
const daemons = "there are no daemons and no virtual machine: gompirun starts the processes itself"
const inherited = "the whole environment is passed on: -x NAME=VALUE changes it, env -i in front of gompirun empties it"
const toFiles = "--output DIR writes DIR/rank.N.stdout and DIR/rank.N.stderr"
const debugger = "a debugger needs a port for each rank: see \"Debuggers\" in docs/running.md"
const fixedCores = "--bind core gives each rank its share of the cores; taskset -c 0-3 gompirun ... bounds what all may use"
const accelerators = "a wrapper gives each rank its device: gompirun ... sh -c 'CUDA_VISIBLE_DEVICES=$GOMPI_LOCAL_RANK exec ./prog'"
const shown = "-v prints where each rank runs"

var foreignFlags = []foreignFlag{
	// Accepted.
	{names: "ntasks", words: 1, as: "--np $1"},
	{names: "perhost grr npernode ntasks-per-node", words: 1, as: "--ppn $1"},
	{names: "pernode", as: "--ppn 1"},
	{names: "ppr", words: 1, as: "--map ppr:$1"},
	{names: "hosts hostlist machines machinelist w nodelist", words: 1, as: "--host $1"},
	{names: "machinefile f F nodefile default-hostfile", words: 1, as: "--hostfile $1"},
	{names: "wd D chdir", words: 1, as: "--wdir $1"},
	{names: "genv env", words: 2, take: variable, say: "-x NAME=VALUE"},
	{names: "set-env", words: 1, take: variable, say: "-x NAME=VALUE"},
	{names: "export", words: 1, take: exported, say: "-x for each NAME=VALUE of ALL,NAME=VALUE,..."},
	{names: "genvall envall fwd-environment", as: noEffect, say: "the whole environment is passed on"},
	{names: "bind-to bindto binding", words: 1, as: "--bind $1"},
	{names: "bind-to-core", as: "--bind core"},
	{names: "map-by mapby", words: 1, as: "--map $1"},
	{names: "bycore", as: "--map core"},
	{names: "byslot", as: "--map slot"},
	{names: "bynode rr", as: "--map node"},
	{names: "l label tag-output prepend-rank", as: "--tag"},
	{names: "output-filename output-directory outdir", words: 1, as: "--output $1"},
	{names: "report-bindings print-rank-map", as: "--verbose"},
	{names: "V", as: "--version"},
	{names: "enable-recovery disable-auto-cleanup", as: "--ft"},
	{names: "with-ft", words: 1, take: faults, say: "--ft for ulfm, mpi and yes; nothing for no"},
	{names: "check_mpi", as: "--check 1"},
	{names: "nooversubscribe", as: "--strict-slots"},
	{names: "get-stack-traces report-state-on-timeout", as: noEffect, say: "--timeout reports both"},
	{names: "disable-recovery enable-auto-cleanup", as: noEffect, say: "a rank that fails ends the job"},
	{names: "K kill-on-bad-exit", take: killOnBadExit, say: "a rank that fails ends the job"},
	{names: "ordered-output", as: noEffect, say: "lines of different ranks are not mixed"},
	{names: "u unbuffered", as: noEffect, say: "an unfinished line comes out after a tenth of a second"},
	{names: "allow-run-as-root", as: noEffect, say: "root may run it"},
	{names: "q quiet Q", as: noEffect, say: "gompirun says nothing when all goes well"},
	{names: "use-hwthread-cpus O overcommit", as: noEffect, say: "more ranks than cores need no flag"},

	// Refused: processes and hosts.
	{names: "c", words: 1, say: "-np N is the number of processes; srun's -c, cores of each, is --bind core"},
	{names: "npersocket ntasks-per-socket", words: 1, say: "-np N and --bind numa"},
	{names: "soft", words: 1, say: "-np N; a program that starts others may use Command.Soft"},
	{names: "nodes", words: 1, say: oneHost + ": -np N"},
	{names: "arch machine order-nodes hosts-group rankmap localhost iface branch-count", words: 1, say: oneHost + ": --host NAME:SLOTS and --hostfile FILE say how many slots it has"},
	{names: "nolocal skip-launch-node hybrid-hosts localonly localroot use-app-topology disable-hostname-propagation enable-hostname-propagation", say: oneHost},
	{names: "add-host add-hostfile relative r exclude", words: 1, say: oneHost},
	{names: "launcher launcher-exec bootstrap bootstrap-exec bootstrap-exec-args rmk launch-agent exec-agent prefix app-prefix pmix-prefix app-pmix-prefix", words: 1, say: oneHost + ", and needs no helper for that"},
	{names: "noprefix no-app-prefix enable-x disable-x uniform-nodes hetero-nodes homo-nodes", say: oneHost + ", and needs no helper for that"},
	{names: "preload-files path gpath bcast bcast-exclude", words: 1, say: oneHost + ": PATH and the working directory (--wdir) are as they are"},
	{names: "s", say: "--stdin RANK, all or none is Intel's -s; others' -s (copy the program, share nodes) has no use here: " + oneHost},
	{names: "preload-binary set-cwd-to-session-dir send-libs", say: "programs are started where they are: --wdir DIR"},
	{names: "gwdir", words: 1, say: "--wdir DIR, for each program of a line with ':'"},
	{names: "umask gumask", words: 1, say: "umask of the shell, before gompirun"},
	{names: "usize", words: 1, say: "--slots N bounds what the job may spawn"},
	{names: "app file configfile", words: 1, say: "write the programs on the line, with ':' between them; a shell script may have it"},
	{names: "multi-prog", say: "write the programs on the line, with ':' between them"},
	{names: "max-restarts", words: 1, say: "processes are not started again; --ft lets the others go on"},
	{names: "continuous no-kill k", say: "--ft: a rank that dies does not end the job"},
	{names: "wait W", words: 1, say: "a rank may end before the others; --kill-grace TIME is for those that are to be ended"},
	{names: "time t", words: 1, say: "--timeout 10m"},
	{names: "spawn-timeout", words: 1, say: "--timeout TIME; changes have --resize-timeout"},

	// Environment.
	{names: "genvlist envlist", words: 1, say: inherited},
	{names: "genvnone envnone genvuser envuser E preserve-env", say: inherited},
	{names: "unset-env", words: 1, say: "env -u NAME in front of gompirun"},
	{names: "append-env prepend-env", words: 2, say: "-x NAME=VALUE with the whole value"},

	// Placement.
	{names: "rank-by rankby", words: 1, say: "ranks are numbered in the order of the command line"},
	{names: "m distribution", words: 1, say: "ranks are numbered in the order of the command line"},
	{names: "bind-to-socket", say: "--bind numa: on most machines a socket is a NUMA node"},
	{names: "cpu-set cpu-list cpus-per-proc cpus-per-rank cpus-per-task rankfile rf cpu-bind cores-per-socket sockets-per-node threads-per-core ntasks-per-core B extra-node-info S core-spec thread-spec hint", words: 1, say: fixedCores},
	{names: "exact overlap use-min-nodes spread-job contiguous", say: fixedCores},
	{names: "membind mem-bind", words: 1, say: "numactl --membind in front of gompirun, or a wrapper; --bind numa keeps ranks near their memory"},
	{names: "g gpus-per-proc gpu-subdevs-per-proc gpu-support accel-bind gpu-bind gpu-freq G gpus gpus-per-node gpus-per-socket gpus-per-task ntasks-per-gpu cpus-per-gpu mem-per-gpu gres gres-flags", words: 1, say: accelerators},
	{names: "topolib demux cartofile cf memory-alloc-kinds", words: 1, say: "there is one way, and no choice"},

	// Output and input.
	{names: "timestamp-output", say: "gompirun ... | ts (of moreutils) adds times"},
	{names: "merge-stderr-to-stdout", say: "the shell does it: gompirun ... 2>&1, or with --output: gompirun ... sh -c 'exec ./prog 2>&1'"},
	{names: "outfile-pattern errfile-pattern outfile errfile o e error xml-file open-mode", words: 1, say: toFiles},
	{names: "prepend-pattern", words: 1, say: "--tag puts [rank] before every line"},
	{names: "output-from", words: 1, say: toFiles + "; or a wrapper: gompirun ... sh -c '[ $GOMPI_RANK = 0 ] || exec >/dev/null; exec ./prog'"},
	{names: "stream-buffering", words: 1, say: "output comes out line by line"},
	{names: "p", words: 1, say: "srun's -p, a partition, is " + batch + "; prun's -p, output for programs, is gompictl top JOB --json"},
	{names: "xml parsable parseable", say: "gompictl top JOB --json writes for programs"},
	{names: "i input", words: 1, say: "--stdin RANK, all or none, with < FILE of the shell"},
	{names: "pty", say: "gompirun gives rank 0 its standard input; script(1) makes a terminal"},

	// What it tells.
	{names: "display-map display-allocation display-devel-map display-devel-allocation display-diffable-map display-comm display-comm-finalize info", say: shown + "; --version the version"},
	{names: "display display-topo", words: 1, say: shown},
	{names: "print-all-exitcodes show-progress report-child-jobs-separately silent-abort", say: "gompirun names the rank that failed first, and with --ft each; gompictl ps and top show the others"},
	{names: "report-pid report-uri report-events", words: 1, say: "gompictl ps lists the jobs of this host and their processes"},
	{names: "output-proctable", say: "gompictl ps lists the jobs of this host and their processes"},
	{names: "do-not-launch test-only", say: "-v prints where each rank runs, when it runs: gompirun -v ... true"},
	{names: "profile", say: "gompirun -v says at the end how far each pair of ranks was, and which way its messages went; gompictl top JOB shows them live"},
	{names: "trace-pt2pt trace-collectives mps aps ilp64 trace", say: "gompirun -v, gompictl top JOB, and Go's own profiles and traces"},
	{names: "gtool gtoolfile", words: 1, say: "a wrapper: gompirun ... sh -c 'exec tool ./prog'"},

	// Debuggers.
	{names: "tv debug gdb gdba", say: debugger},
	{names: "stop-on-exec stop-in-init stop-in-app", say: debugger},
	{names: "debugger xterm", words: 1, say: debugger},
	{names: "d debug-devel debug-daemons debug-daemons-file leave-session-attached", say: daemons},
	{names: "slurmd-debug", words: 1, say: daemons},

	// Parameters.
	{names: "mca gmca pmixmca prtemca omca gomca", words: 2, say: "there are no MCA parameters: --transport chooses transports, --coll algorithms, gompirun --help-env lists every setting"},
	{names: "am amca tune", words: 1, say: "there are no MCA parameters: --transport chooses transports, --coll algorithms, gompirun --help-env lists every setting"},
	{names: "initial-errhandler", words: 1, say: "errors are returned: Comm.SetErrorHandler changes that"},
	{names: "runtime-options rtos", words: 1, say: "--ft for recoverable and continuous, --timeout for its own, and debuggers as in docs/running.md; other runtime options have no counterpart"},
	{names: "dapl ib rdma RDMA psm psm2 ofi tmi mx noconf", say: "--transport shm,tcp chooses transports"},
	{names: "mpi resv-ports network", words: 1, say: "gompirun tells its processes of each other itself: no PMI, no option for a network"},
	{names: "forward-signals signal", words: 1, say: "INT, TERM, HUP, USR1, USR2, TSTP and CONT are passed on"},
	{names: "quit-on-interrupt disable-status X", say: "^C ends the job, a second one at once"},
	{names: "tmpdir", words: 1, say: "no files are made"},

	// Daemons.
	{names: "dvm dvm-uri dvm-hostfile ompi-server nameserver personality namespace pid num-connect-retries wait-to-connect alloc-id alloc-refid session-id max-vm-size keepalive singleton hnp activate launcher-hostfile", words: 1, say: daemons + "; gompirun --head makes a queue, and ports need no server"},
	{names: "system-server system-server-first system-server-only do-not-connect daemonize set-sid no-ready-msg novm terminate test-suicide no-aggregate-help do-not-resolve use-regexp index-argv-by-rank fwd-mpirun-port", say: daemons},
	{names: "pmi-port pmi_args pmi-connect pmi-aggregate pmi-noaggregate cleanup restart", say: daemons + ", no PMI and no checkpoints"},
	{names: "ckpoint ckpoint-interval ckpoint-prefix ckpoint-tmp-prefix ckpointlib ckpoint-logfile", words: 1, say: "there are no checkpoints"},

	// srun's that are the batch system's.
	{names: "A account acctg-freq bb bbf b begin cluster-constraint M clusters comment C constraint container cpu-freq deadline delay-boot dependency epilog gid het-group J job-name jobid L licenses mail-type mail-user mcs-label mem mem-per-cpu mincpus msg-timeout P power partition prefer priority prolog qos reservation switches task-epilog task-prolog T threads time-min tmp uid wckey", words: 1, say: batch},
	{names: "compress exclusive hold I immediate nice Z no-allocate propagate reboot x11 usage", say: batch},
}

// foreignByName finds the row of a flag.
var foreignByName = func() map[string]*foreignFlag {
	m := map[string]*foreignFlag{}
	for i := range foreignFlags {
		for name := range strings.FieldsSeq(foreignFlags[i].names) {
			if m[name] != nil {
				panic("BUG: two rows for " + name)
			}
			m[name] = &foreignFlags[i]
		}
	}
	return m
}()

// translate returns our flags for a flag with its value, or why it is refused.
func (f *foreignFlag) translate(value string, has bool) (ours []string, refused string) {
	switch {
	case f.take != nil:
		return f.take(value)
	case f.as == "":
		return nil, f.say
	case f.words == 0 && has:
		if yes, err := strconv.ParseBool(value); err != nil || !yes {
			return nil, fmt.Sprintf("%q cannot be said of it: %s", value, f.meaning())
		}
	}
	if f.as == noEffect {
		return nil, ""
	}
	for w := range strings.FieldsSeq(f.as) {
		ours = append(ours, strings.ReplaceAll(w, "$1", value))
	}
	return ours, ""
}

// meaning describes a flag that is accepted.
func (f *foreignFlag) meaning() string {
	if f.say != "" {
		return f.say
	}
	return strings.NewReplacer("$1", "VALUE", "--np", "-np", "--ppn", "-N").Replace(f.as)
}

func variable(value string) ([]string, string) {
	if name, _, ok := strings.Cut(value, "="); !ok || name == "" {
		return nil, "-x NAME=VALUE sets a variable"
	}
	return []string{"--x", value}, ""
}

func exported(value string) (ours []string, refused string) {
	list := strings.Split(value, ",")
	if list[0] != "ALL" {
		return nil, inherited
	}
	for _, x := range list[1:] {
		if !strings.Contains(x, "=") {
			continue // the variable is passed on anyway
		}
		ours = append(ours, "--x", x)
	}
	return ours, ""
}

func killOnBadExit(value string) ([]string, string) {
	if value != "" && value != "1" {
		return nil, "--ft: a rank that dies does not end the job"
	}
	return nil, ""
}

func faults(value string) ([]string, string) {
	switch strings.ToLower(value) {
	case "ulfm", "mpi", "yes", "true", "1":
		return []string{"--ft"}, ""
	case "no", "none", "false", "0":
		return nil, ""
	}
	return nil, "--ft: a rank that dies does not end the job"
}

// outputs are the values of --output in other launchers, with hints.
var outputs = []struct{ names, use string }{
	{"tag tag-detailed tag-fullname rank", "--tag"},
	{"timestamp", "gompirun ... | ts (of moreutils) adds times"},
	{"xml", "gompictl top JOB --json writes for programs"},
	{"merge merge-stderr-to-stdout", "2>&1 of the shell"},
	{"dir directory file filename", "--output DIR"},
	{"copy nocopy raw pattern", "--output DIR"},
}

// outputHint returns a hint for a value of --output of other launchers; "": it is the name
// of a folder.
func outputHint(value string) string {
	if strings.Contains(value, "%") {
		return toFiles + "; a name with % is written ./" + value
	}
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ':' }) {
		word, _, _ = strings.Cut(strings.ToLower(word), "=")
		for _, o := range outputs {
			if slices.Contains(strings.Fields(o.names), word) {
				return fmt.Sprintf("use %s; a folder of that name is written ./%s", o.use, value)
			}
		}
	}
	if fileName.MatchString(value) {
		return toFiles + ", no file of all ranks; a folder of that name is written ./" + value
	}
	return ""
}

// fileName matches a path that srun would take for a file: with an extension such as .log,
// and neither absolute nor beginning with a dot.
var fileName = regexp.MustCompile(`^[^./][^:,=]*\.[A-Za-z][A-Za-z0-9]*$`)

// withoutModifier removes a modifier of --bind or --map that asks for the default
// behaviour.
func withoutModifier(value, harmless string) string {
	if i := strings.LastIndexByte(value, ':'); i >= 0 && slices.Contains(strings.Fields(harmless), strings.ToLower(value[i+1:])) {
		return withoutModifier(value[:i], harmless)
	}
	return value
}

// substitute returns a hint for a value of --bind or --map of other launchers.
func substitute(value string) string {
	switch head, _, _ := strings.Cut(strings.ToLower(value), ":"); head {
	case "hwthread", "hwt", "thread":
		return "core gives each rank its share of the cores, with all their hardware threads"
	case "socket", "package", "board", "machine", "l3cache", "l2cache", "l1cache", "l4cache", "l5cache", "cluster":
		return "numa is nearest: on most machines a socket is a NUMA node"
	case "ppr":
		return "use -np N, or -N n for n on each host"
	case "cpu-list", "cpulist", "pe-list", "rankfile", "seq", "user", "pin", "cell", "rr", "dist", "likwid", "domain", "map":
		return fixedCores
	case "core", "slot", "numa", "node", "":
		return "modifiers (PE=n, SPAN, ...) are not there: core divides the cores among the ranks, and more ranks than cores need no flag"
	}
	return ""
}
