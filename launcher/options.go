// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gompi/internal/base/version"
	"gompi/internal/launch"
)

// options is a checked command line.
type options struct {
	launch.Options
	changes   changes
	hosts     []hostSlots // empty: this host, without a limit
	fakeHosts []int       // slots of fake hosts; see fakeHostsFlag
	warnings  []string
	queue     *jobQueue  // nil: gompirun starts a job, and is no head of several jobs
	lease     *leasedJob // nil: the job has no lease of such a head
}

// errHelp is a help text that was asked for.
type errHelp string

func (e errHelp) Error() string { return string(e) }

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// flagValues are the flags of one program's section.
type flagValues struct {
	launch.App
	set                       *pflag.FlagSet
	hosts, hostfile, pretend  string
	timeout, killGrace, stdin string
	mapBy                     string
	perHost                   int
	x                         []string
	settings                  map[string]*string
	ignored, help             bool
	helpEnv, version          bool
	changes                   changeValues
	changing                  *pflag.FlagSet // the flags of changes
}

// flags declares the flags. A later program of an MPMD line has a subset: the others are
// about the whole job.
func flags(o *options, first bool) *flagValues {
	v := &flagValues{settings: map[string]*string{}}
	s := pflag.NewFlagSet("gompirun", pflag.ContinueOnError)
	v.set = s
	s.SortFlags = false
	s.SetInterspersed(false)
	s.Usage = func() {}
	s.IntVarP(&v.NP, "np", "n", 0, "processes to start (default: the slots of the hosts, or one per usable CPU)")
	s.StringVarP(&v.hosts, "host", "H", "", "hosts as `NAME[:SLOTS],...`; only this host for now")
	s.StringVar(&v.hostfile, "hostfile", "", "`FILE` of hosts: NAME [slots=N] [max_slots=N] a line")
	s.StringArrayVarP(&v.x, "x", "x", nil, "set `NAME=VALUE` for the processes (NAME: already exported, as everything is)")
	s.StringVar(&v.Wdir, "wdir", "", "start the processes in `DIR`")
	if !first {
		return v
	}
	s.StringVar(&v.timeout, "timeout", "", "report and end the job after this `TIME` (60s, 2m, or seconds)")
	s.StringVar(&v.killGrace, "kill-grace", "2s", "`TIME` between SIGTERM and SIGKILL when a job ends early")
	s.BoolVar(&o.Tag, "tag", false, "put \"[rank] \" before every line of output")
	s.StringVar(&o.OutputDir, "output", "", "write output to `DIR`/rank.N.stdout and DIR/rank.N.stderr instead")
	s.StringVar(&v.stdin, "stdin", "0", "`WHO` gets standard input: a rank, all or none")
	s.StringVar(&o.Bind, "bind", "", "`WHAT` each rank is bound to: core (its share of them), numa (a node), none (default: core; with more ranks than cores for the first moment only)")
	s.StringVar(&v.mapBy, "map", "", "accepted; core, slot, numa and node are the same `WHAT` on one host")
	s.BoolVar(&v.ignored, "oversubscribe", false, "accepted; more ranks than cores need no flag")
	s.BoolVar(&o.FT, "ft", false, "a rank that dies does not end the job")
	s.BoolVarP(&o.Verbose, "verbose", "v", false, "print where each rank runs")
	for _, k := range Knobs() {
		v.settings[k.Env] = s.String(k.Flag, "", k.Help+" ("+k.Env+")")
	}
	s.BoolVar(&v.helpEnv, "help-env", false, "list the environment variables that set the same as flags")
	s.BoolVar(&v.version, "version", false, "print the version")
	s.BoolVarP(&v.help, "help", "h", false, "print this")
	s.IntVarP(&v.perHost, "ppn", "N", 0, "")
	s.MarkHidden("ppn")
	s.StringVar(&v.pretend, fakeHostsFlag, "", "")
	s.MarkHidden(fakeHostsFlag)
	v.changing = changeFlags(v)
	return v
}

const usageLine = `Usage: gompirun [flags] PROGRAM [ARGS] [: [flags] PROGRAM2 [ARGS] ...]
       gompirun --head [NAME] [flags]               a head of several jobs, and then
       gompirun --to NAME [flags] PROGRAM [ARGS]    each of them
`

const usageEnd = `
Long flags may have one dash or two: -np 4. Behind a ':' stand -np, -H, --hostfile, -x and --wdir only.
^C ends the job, a second one at once. ^\ (SIGQUIT) prints what every rank waits for, as does gompictl stacks.
The status is that of the rank that failed first, or 128 and its signal; 124 after --timeout.
docs/running.md says more.
`

// parse reads a command line without the program's name. getenv is os.Getenv.
func parse(args []string, getenv func(string) string) (*options, error) {
	o := &options{Options: launch.Options{Settings: map[string]string{}}}
	settingFlags := map[string]*string{}
	var first *flagValues
	for i, part := range split(args) {
		v := flags(o, i == 0)
		job := v.set
		if first != nil {
			job = first.set
		}
		words, err := longFlags(v.set, job, part)
		if err != nil {
			return nil, err
		}
		if err := v.set.Parse(words); err != nil {
			return nil, usageError{err}
		}
		switch {
		case v.help:
			return nil, errHelp(usageLine + v.flagUsages() + usageEnd)
		case v.version:
			return nil, errHelp(version.Line("gompirun"))
		case v.helpEnv:
			return nil, errHelp(settingsHelp())
		}
		if v.changes.head != "" {
			return o, v.setJobQueue(o)
		}
		if i == 0 {
			first, settingFlags = v, v.settings
			if err := v.whole(o); err != nil {
				return nil, err
			}
		}
		if err := v.section(o); err != nil {
			return nil, err
		}
	}
	if err := o.applySettings(settingFlags, getenv); err != nil {
		return nil, err
	}
	if err := o.count(); err != nil {
		return nil, err
	}
	if err := first.changes.check(o); err != nil {
		return nil, err
	}
	return o, first.chooseManager(o)
}

// split cuts an MPMD line at its colons.
func split(args []string) [][]string {
	parts := [][]string{nil}
	for _, a := range args {
		if a == ":" {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], a)
	}
	return parts
}

// longFlags prepares the flags before the program for pflag: each gets two dashes (-np,
// -host). It translates the flags of other launchers, and refuses unknown ones with a
// hint. job has the flags of the first program of a line.
func longFlags(s, job *pflag.FlagSet, args []string) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' || a == "--" {
			return append(out, args[i:]...), nil
		}
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if base := strings.TrimRight(name, "0123456789"); a[1] != '-' && !has && base != name && declared(s, name) == nil && takesNumber(s, base) {
			name, value, has = base, name[len(base):], true // -n4
		}
		f := declared(s, name)
		if f == nil {
			words, n, err := foreignWords(s, job, a, name, value, has, args[i+1:])
			if err != nil {
				return nil, err
			}
			out, i = append(out, words...), i+n
			continue
		}
		switch {
		case has:
			out = append(out, "--"+f.Name+"="+value)
		case f.NoOptDefVal == "" && i+1 < len(args):
			i++
			value = args[i]
			out = append(out, "--"+f.Name, value)
		case f.Name == "head" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++
			out = append(out, "--head="+args[i]) // a head starts no program
		default:
			out = append(out, "--"+f.Name)
		}
		if f.Name == "output" {
			if use := outputHint(value); use != "" {
				return nil, usagef("--output %s: %s", value, use)
			}
		}
	}
	return out, nil
}

// declared returns one of our own flags, by its name or its letter.
func declared(s *pflag.FlagSet, name string) *pflag.Flag {
	if len(name) == 1 {
		if f := s.ShorthandLookup(name); f != nil {
			return f
		}
	}
	return s.Lookup(name)
}

// takesNumber reports whether a number may follow a flag with one dash directly.
func takesNumber(s *pflag.FlagSet, name string) bool {
	if f := declared(s, name); f != nil {
		return f.Value.Type() == "int"
	}
	f := foreignByName[name]
	return f != nil && f.words == 1
}

// foreignWords translates a flag that is not declared, and returns the number of following
// words that belong to it.
func foreignWords(s, job *pflag.FlagSet, a, name, value string, has bool, rest []string) (words []string, n int, err error) {
	f := foreignByName[name]
	switch {
	case f == nil && declared(job, name) != nil:
		return nil, 0, usagef("unknown flag: %s (flags about the whole job go before the first program)", a)
	case f == nil && a[1] != '-' && len(name) > 1 && s.ShorthandLookup(name[:1]) != nil:
		return nil, 0, usagef("unknown flag: %s (the value of -%s is a word of its own: -%s %s)", a, name[:1], name[:1], strings.TrimLeft(a, "-")[1:])
	case f == nil:
		return nil, 0, usagef("unknown flag: %s", a)
	}
	if !has && (f.as != "" || f.take != nil) {
		if n = f.words; n == 2 && len(rest) > 0 && strings.Contains(rest[0], "=") {
			n = 1 // -genv NAME=VALUE
		}
		if len(rest) < n {
			return nil, 0, usagef("flag needs an argument: %s", a)
		}
		value, has = strings.Join(rest[:n], "="), n > 0
	}
	words, refused := f.translate(value, has)
	if refused != "" {
		return nil, 0, usagef("%s: %s", a, refused)
	}
	for _, w := range words {
		if name, is := strings.CutPrefix(w, "--"); is && s.Lookup(name) == nil {
			return nil, 0, usagef("unknown flag: %s, which is %s (flags about the whole job go before the first program)", a, strings.Join(words, " "))
		}
	}
	return words, n, nil
}

// whole checks the flags about the whole job.
func (v *flagValues) whole(o *options) (err error) {
	if o.Timeout, err = seconds("timeout", v.timeout); err != nil {
		return err
	}
	if o.KillGrace, err = seconds("kill-grace", v.killGrace); err != nil {
		return err
	}
	switch v.stdin {
	case "all":
		o.Stdin = launch.StdinAll
	case "none":
		o.Stdin = launch.StdinNone
	default:
		r, err := strconv.Atoi(v.stdin)
		if err != nil || r < 0 {
			return usagef("--stdin %s: not a rank, all or none", v.stdin)
		}
		o.Stdin = launch.StdinTo(r)
	}
	switch o.Bind = withoutModifier(o.Bind, "overload-allowed if-supported"); o.Bind {
	case "", "core", "numa", "none":
	default:
		return usagef("--bind %s: not core, numa or none%s", o.Bind, remark(substitute(o.Bind)))
	}
	v.mapBy = withoutModifier(v.mapBy, "oversubscribe")
	if n, ok := strings.CutPrefix(v.mapBy, "ppr:"); ok && (strings.HasSuffix(n, ":node") || strings.HasSuffix(n, ":host")) {
		if v.perHost, err = strconv.Atoi(n[:len(n)-len(":node")]); err != nil || v.perHost < 1 {
			return usagef("--map %s: not ppr:N:node", v.mapBy)
		}
		v.mapBy = "node"
	}
	switch v.mapBy {
	case "", "core", "slot", "numa", "node":
	default:
		return usagef("--map %s: not core, slot, numa or node%s", v.mapBy, remark(substitute(v.mapBy)))
	}
	if v.perHost != 0 || v.set.Changed("ppn") {
		return v.spread()
	}
	return v.setFakeHosts(o)
}

// spread applies -N: there is one host.
func (v *flagValues) spread() error {
	switch {
	case v.perHost < 1:
		return usagef("-N %d: at least 1 process is needed", v.perHost)
	case v.NP > v.perHost:
		return usagef("-np %d with -N %d needs %d hosts; %s (srun's -N, the number of hosts, is not needed)", v.NP, v.perHost, (v.NP+v.perHost-1)/v.perHost, oneHost)
	case v.NP == 0:
		v.NP = v.perHost
	}
	return nil
}

// remark returns a text that continues a sentence, if there is one.
func remark(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// section checks one program's part and appends it to o.
func (v *flagValues) section(o *options) error {
	a := v.App
	a.Argv = v.set.Args()
	if len(a.Argv) == 0 {
		return usagef("no program given")
	}
	if a.Argv[0] == "" {
		return usagef("the program's name is empty (a shell variable that is not set?)")
	}
	if v.set.Changed("np") && a.NP < 1 {
		return usagef("-np %d: at least 1 process is needed", a.NP)
	}
	for _, x := range v.x {
		name, _, hasValue := strings.Cut(x, "=")
		if name == "" {
			return usagef("-x %s: a name is missing", x)
		}
		if hasValue {
			a.Env = append(a.Env, x)
		} else if _, ok := os.LookupEnv(name); !ok {
			o.warnings = append(o.warnings, fmt.Sprintf("-x %s: not in the environment", name))
		}
	}
	if err := v.hostList(o); err != nil {
		return err
	}
	o.Apps = append(o.Apps, a)
	return nil
}

// hostList appends the hosts of one program's part to o.
func (v *flagValues) hostList(o *options) error {
	if v.hosts != "" {
		hs, err := parseHosts(v.hosts)
		if err != nil {
			return err
		}
		o.hosts = append(o.hosts, hs...)
	}
	if v.hostfile != "" {
		text, err := os.ReadFile(v.hostfile)
		if err != nil {
			return usageError{err}
		}
		hs, err := parseHostfile(v.hostfile, string(text))
		if err != nil {
			return err
		}
		o.hosts = append(o.hosts, hs...)
	}
	return nil
}

// verboseEnv lets processes print their choices.
const verboseEnv = "GOMPI_VERBOSE"

// boundEnv tells processes the user's --bind.
const boundEnv = "GOMPI_BIND"

// applySettings collects the settings: a flag wins over -x, and -x over the environment.
func (o *options) applySettings(flags map[string]*string, getenv func(string) string) error {
	if o.Verbose {
		o.Settings[verboseEnv] = "1"
	}
	if o.Bind != "" {
		o.Settings[boundEnv] = o.Bind
	}
	for _, k := range Knobs() {
		value, from := getenv(k.Env), k.Env+"="
		for _, a := range o.Apps {
			for _, x := range a.Env {
				if v, ok := strings.CutPrefix(x, k.Env+"="); ok {
					value, from = v, "-x "+k.Env+"="
				}
			}
		}
		if f := flags[k.Env]; f != nil && *f != "" {
			value, from = *f, "--"+k.Flag+" "
		}
		if value == "" {
			continue
		}
		given, err := value, error(nil)
		if k.load != nil {
			given, err = k.load(value)
		} else {
			err = k.check(value)
		}
		if err != nil {
			return usagef("%s%s: %w", from, value, err)
		}
		o.Settings[k.Env] = given
	}
	return nil
}

// count sets the number of processes of each program and checks the hosts.
func (o *options) count() error {
	if len(o.Apps) > 1 {
		for _, a := range o.Apps {
			if a.NP == 0 {
				return usagef("-np is missing for %s (every program of a line with ':' needs it)", a.Argv[0])
			}
		}
	}
	if a := &o.Apps[0]; a.NP == 0 {
		if a.NP = slotCount(o.hosts); o.fakeHosts != nil {
			a.NP = len(o.fakeHosts) * o.fakeHosts[0]
		}
	}
	n := o.ranks()
	if n > maxRanks {
		return usagef("too many processes: at most %d", maxRanks)
	}
	if o.Stdin >= 0 && int(o.Stdin) >= n {
		return usagef("--stdin %d: there are only %d ranks", o.Stdin, n)
	}
	if o.Stdin == launch.StdinAll && len(o.fakeHosts) > 1 {
		return usagef("--stdin all is not possible with several hosts")
	}
	return checkHosts(o.hosts, n)
}

// ranks returns the number of processes to start, or a number above maxRanks.
func (o *options) ranks() int {
	n := 0
	for _, a := range o.Apps {
		n += min(a.NP, maxRanks+1)
	}
	return n
}

// seconds reads a duration; a bare number means seconds.
func seconds(flag, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		f, err2 := strconv.ParseFloat(s, 64)
		if err2 != nil || !(f >= 0 && f < 1e9) {
			return 0, usagef("--%s %s: not a time such as 60s, 2m or 60", flag, s)
		}
		d = time.Duration(f * float64(time.Second))
	}
	if d < 0 {
		return 0, usagef("--%s %s: negative", flag, s)
	}
	return d, nil
}

// isUsage reports whether an error is a mistake in the command line.
func isUsage(err error) bool { return errors.As(err, new(usageError)) }
