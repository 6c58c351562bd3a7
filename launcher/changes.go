// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gompi/internal/control/head"
	"gompi/launcher/pool"
)

// changes are the command line's settings for processes that come and go.
type changes struct {
	slots         int  // the job never has more; 0: no limit
	strict        bool // no host has more than its slots
	min, max      int  // size of gompi://main; 0: no bound
	resizeTimeout time.Duration
	commitTimeout time.Duration
	leaveTimeout  time.Duration
	psets         []pset
	driver        *driver // nil: there is no manager
	manager       string  // socket of an external manager; "": none
}

// pset is a named set of ranks of the first world.
type pset struct {
	name  string
	ranks []int
}

// changeValues are the flags as they were typed.
type changeValues struct {
	slots, min, max int
	spare           int
	strict          bool
	psets           []string
	resize, commit  string
	leave           string
	schedule        string
	discover        string
	watchHostfile   bool
	manager         string
	policy, col     string
	head, to        string
}

const changesTitle = "\nProcesses that come and go (docs/sessions.md):\n"

// changeFlags declares the flags, and returns them as a group of the help.
func changeFlags(v *flagValues) *pflag.FlagSet {
	s := pflag.NewFlagSet("changes", pflag.ContinueOnError)
	s.SortFlags = false
	c := &v.changes
	s.IntVar(&c.min, "min", 0, "no change makes the main set smaller than `N` (default: 1)")
	s.IntVar(&c.max, "max", 0, "no change makes it larger than `N` (default: no bound)")
	s.IntVar(&c.slots, "slots", 0, "the job never has more than `N` processes, spawned ones counted (default: max_slots of the hosts, or as many as there is memory for)")
	s.BoolVar(&c.strict, "strict-slots", false, "the slots of the hosts, or the usable CPUs, are such a limit, also of each host")
	s.IntVar(&c.spare, "spare", 0, "keep `N` processes of the first program started, over all hosts, which wait in Init until a change takes them")
	s.StringArrayVar(&c.psets, "pset", nil, "name ranks as a process set app://NAME: `NAME=0-3,7`")
	s.StringVar(&c.resize, "resize-timeout", "60s", "`TIME` for newcomers to get ready, and again for the others to take up the change (0: for ever)")
	s.StringVar(&c.commit, "commit-timeout", "", "`TIME` from when the first process takes up a change until all have, unless data moves or they report (default: --resize-timeout; 0: for ever)")
	s.StringVar(&c.leave, "leave-timeout", "60s", "`TIME` for leavers to end before they are ended (0: for ever)")
	s.StringVar(&c.head, "head", "", "be a head of several jobs, called `NAME`: it has slots (--slots, -H, --hostfile; default: the usable CPUs) and a queue, starts nothing, and ends its jobs when it ends; with --policy, --manager, --discover, --watch-hostfile, -v")
	s.Lookup("head").NoOptDefVal = pool.DefaultName
	s.StringVar(&c.to, "to", "", "hand the job to the head `NAME`: it begins when there are slots, and changes as that decides")
	s.StringVar(&c.schedule, "schedule", "", "resize the main set by a timetable that counts from the start: `TIMES` such as 10s:+4,20s:-2,1m:=8")
	s.StringVar(&c.discover, "discover", "", "resize it to the slots of the hosts that this `COMMAND` of the shell prints, NAME[:SLOTS] a line; it is run each second")
	s.BoolVar(&c.watchHostfile, "watch-hostfile", false, "resize it to the slots in --hostfile, which is read each second")
	s.StringVar(&c.policy, "policy", "", "resize it as the `POLICY` finds best for the slots that there are: dmr or ascent; with --discover or --watch-hostfile for those of the list. With --head also slots, fifo, firstfit and easy (the default)")
	s.StringVar(&c.col, "col", "", "`FILE` with what the policy is told of the program (default: it uses its processes well)")
	s.StringVar(&c.manager, "manager", "", "a program that connects to the Unix socket `PATH` resizes it; PATH.secret has what it must say")
	v.set.AddFlagSet(s)
	return s
}

// flagUsages returns the help on all flags; those about changes are a group of their own.
func (v *flagValues) flagUsages() string {
	s := pflag.NewFlagSet("others", pflag.ContinueOnError)
	s.SortFlags = false
	v.set.VisitAll(func(f *pflag.Flag) {
		if v.changing == nil || v.changing.Lookup(f.Name) == nil {
			s.AddFlag(f)
		}
	})
	if v.changing == nil {
		return s.FlagUsages()
	}
	return s.FlagUsages() + changesTitle + v.changing.FlagUsages()
}

// check sets the options of changes, once the programs and hosts are known.
func (c *changeValues) check(o *options) (err error) {
	n := o.ranks()
	if o.changes.resizeTimeout, err = limit("resize-timeout", c.resize); err != nil {
		return err
	}
	if o.changes.commitTimeout = o.changes.resizeTimeout; c.commit != "" {
		if o.changes.commitTimeout, err = limit("commit-timeout", c.commit); err != nil {
			return err
		}
	}
	if o.changes.leaveTimeout, err = limit("leave-timeout", c.leave); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"min", c.min}, {"max", c.max}, {"slots", c.slots}, {"spare", c.spare}} {
		if f.n < 0 || f.n > maxRanks {
			return usagef("--%s %d: not a number of processes from 0 to %d", f.name, f.n, maxRanks)
		}
	}
	switch {
	case c.min > n:
		return usagef("--min %d: the job begins with %d processes", c.min, n)
	case c.max != 0 && c.max < n:
		return usagef("--max %d: the job begins with %d processes", c.max, n)
	}
	o.changes.min, o.changes.max, o.changes.strict, o.Spare = c.min, c.max, c.strict, c.spare
	hosts := o.hosts
	for _, n := range o.fakeHosts {
		hosts = append(hosts, hostSlots{slots: n})
	}
	if o.changes.slots = slotLimit(hosts, c.slots, c.strict); o.changes.slots != 0 && n > o.changes.slots {
		return usagef("%d processes, but the job has %d slots (--slots, --strict-slots)", n, o.changes.slots)
	}
	for _, text := range c.psets {
		s, err := parsePSet(text, n)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(o.changes.psets, func(t pset) bool { return t.name == s.name }) {
			return usagef("--pset %s: there are two of that name", text)
		}
		o.changes.psets = append(o.changes.psets, s)
	}
	return nil
}

// limit parses a duration. 0 means forever, and becomes negative.
func limit(flag, text string) (time.Duration, error) {
	d, err := seconds(flag, text)
	if err == nil && d == 0 {
		d = -1
	}
	return d, err
}

// slotLimit returns the largest number of processes; 0: no limit.
func slotLimit(hs []hostSlots, slots int, strict bool) int {
	n, limited := 0, len(hs) > 0
	for _, h := range hs {
		limited = limited && h.maxSlots > 0
		n += h.maxSlots
	}
	if !limited {
		n = 0
	}
	if strict && (n == 0 || slotCount(hs) < n) {
		n = slotCount(hs)
	}
	if slots > 0 && (n == 0 || slots < n) {
		n = slots
	}
	return n
}

// parsePSet reads "NAME=0-3,7": ranks below n, in this order.
func parsePSet(text string, n int) (pset, error) {
	name, list, ok := strings.Cut(text, "=")
	name = strings.TrimPrefix(name, "app://")
	if !ok || name == "" || list == "" {
		return pset{}, usagef("--pset %s: not NAME=RANKS such as left=0-3,7", text)
	}
	s := pset{name: name}
	seen := map[int]bool{}
	for item := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(item, "-")
		a, err := strconv.Atoi(from)
		b, err2 := a, error(nil)
		if isRange {
			b, err2 = strconv.Atoi(to)
		}
		if err != nil || err2 != nil || a < 0 || b < a || b >= n {
			return pset{}, usagef("--pset %s: %q are no ranks of %d", text, item, n)
		}
		for r := a; r <= b; r++ {
			if seen[r] {
				return pset{}, usagef("--pset %s: rank %d is there twice", text, r)
			}
			seen[r] = true
			s.ranks = append(s.ranks, r)
		}
	}
	return s, nil
}

// configure puts the options into the configuration of the head.
func (c *changes) configure(cfg *head.Config) {
	cfg.Launches, cfg.Slots, cfg.Strict = true, c.slots, c.strict
	cfg.ToReady, cfg.ToAccept, cfg.ToCommit, cfg.LeaveTimeout = c.resizeTimeout, c.resizeTimeout, c.commitTimeout, c.leaveTimeout
	cfg.Min, cfg.Max = c.min, c.max
	cfg.Boards = sharesMemory(cfg.Settings["GOMPI_TRANSPORT"])
	for _, s := range c.psets {
		cfg.PSets = append(cfg.PSets, head.PSet{Name: s.name, Ranks: s.ranks})
	}
}

// sharesMemory reports whether processes that use these transports share memory.
func sharesMemory(transports string) bool {
	return transports == "" || slices.ContainsFunc(strings.Split(transports, ","), func(name string) bool {
		return strings.TrimSpace(name) == "shm"
	})
}
