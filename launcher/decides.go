// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gompi/launcher/pool"
	"gompi/launcher/rm"
)

// decides settles who decides about the size of the job, and who says how many slots
// there are.
func (v *flagValues) decides(o *options) error {
	c := &v.changes
	deciders := given(map[string]bool{"--schedule": c.schedule != "", "--manager": c.manager != "", "--policy": c.policy != ""})
	lists := given(map[string]bool{"--discover": c.discover != "", "--watch-hostfile": c.watchHostfile})
	if c.to != "" {
		return v.lets(o, append(deciders, lists...))
	}
	switch {
	case len(deciders) > 1 || len(lists) > 1:
		return usagef("%s: one of them decides", strings.Join(append(deciders, lists...), " and "))
	case len(lists) > 0 && len(deciders) > 0 && c.policy == "":
		return usagef("%s and %s: one of them decides", deciders[0], lists[0])
	case len(lists) > 0 && c.strict:
		return usagef("--strict-slots: the slots are those of the list that %s looks at", lists[0])
	case c.watchHostfile && v.hostfile == "":
		return usagef("--watch-hostfile needs a --hostfile")
	case c.col != "" && c.policy == "":
		return usagef("--col %s is for a --policy, or for the head that --to names", c.col)
	}
	switch {
	case c.schedule != "":
		list, err := rm.ParseSchedule(c.schedule)
		if err != nil {
			return usagef("--schedule: %w", err)
		}
		o.changes.steward = newSteward("--schedule", rm.NewSchedule(list))
	case c.manager != "":
		o.changes.manager = c.manager
	case c.policy != "":
		return v.obeys(o)
	case len(lists) > 0:
		o.changes.steward = newSteward(lists[0], &rm.Follow{})
	}
	v.looks(o)
	return nil
}

// given are the flags that were given, in order.
func given(flags map[string]bool) (list []string) {
	for name, is := range flags {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// looks has the steward told of the slots in a list, if there is one.
func (v *flagValues) looks(o *options) {
	if d := v.list(len(o.pretend)); d != nil {
		o.changes.steward.watch = d.watch
	}
}

// list is the list of hosts that somebody else keeps; nil: there is none.
func (v *flagValues) list(pretended int) *discovery {
	c := &v.changes
	d := &discovery{flag: "--discover", command: c.discover, names: hostNames(pretended), every: lookEvery}
	switch {
	case c.watchHostfile:
		d.flag, d.file = "--watch-hostfile", v.hostfile
	case c.discover == "":
		return nil
	}
	return d
}

// obeys makes a policy decide.
func (v *flagValues) obeys(o *options) error {
	c := &v.changes
	// The others never resize a job that does not ask for it.
	policies := []rm.Policy{rm.DMR{}, rm.Ascent{}}
	i := slices.IndexFunc(policies, func(p rm.Policy) bool { return p.Name() == c.policy })
	if i < 0 {
		return usagef("--policy %s: not dmr or ascent", c.policy)
	}
	col, err := c.scaling()
	if err != nil {
		return err
	}
	w := newSteward("--policy", rm.NewShared(rm.Config{Policy: policies[i]}))
	w.leases, w.bound = true, c.bound
	w.col = col
	o.changes.steward = w
	if v.looks(o); w.watch != nil {
		return nil // the list says how many slots there are
	}
	if w.slots = o.changes.slots; w.slots == 0 {
		w.slots = slotCount(o.hosts)
	}
	return nil
}

// scaling is what the command line says of that of the program.
func (c *changeValues) scaling() (*rm.COL, error) {
	col := &rm.COL{Version: 1}
	if c.col != "" {
		text, err := os.ReadFile(c.col)
		if err != nil {
			return nil, usageError{err}
		}
		if col, err = rm.ParseCOL(text); err != nil {
			return nil, usagef("--col %s: %w", c.col, err)
		}
	}
	if err := c.bound(col); err != nil {
		return nil, usagef("--col, %w", err)
	}
	return col, nil
}

// lets the head of several jobs decide.
func (v *flagValues) lets(o *options, others []string) error {
	c := &v.changes
	if len(others) > 0 {
		return usagef("--to %s and %s: the head decides", c.to, strings.Join(others, ", "))
	}
	if o.pretend != nil {
		return usagef("--to %s with --%s", c.to, pretendFlag)
	}
	if err := pool.CheckName(c.to); err != nil {
		return usageError{err}
	}
	col, err := c.scaling()
	if err != nil {
		return err
	}
	o.to = &tenant{name: c.to, col: col, bound: c.bound, slots: o.changes.slots}
	if len(o.Apps) > 1 || v.set.Changed("np") {
		o.to.start = o.ranks()
	}
	return nil
}

// ofHeads are the flags of a head of several jobs.
var ofHeads = []string{"head", "slots", "host", "hostfile", "policy", "manager", "discover", "watch-hostfile", "verbose"}

// holds makes a head of several jobs of the flags.
func (v *flagValues) holds(o *options) error {
	c := &v.changes
	if err := pool.CheckName(c.head); err != nil {
		return usageError{err}
	}
	if rest := v.set.Args(); len(rest) > 0 {
		return usagef("--head %s starts nothing: gompirun --to %s %s hands it a job", c.head, c.head, rest[0])
	}
	var err error
	v.set.Visit(func(f *pflag.Flag) {
		if !slices.Contains(ofHeads, f.Name) && err == nil {
			err = usagef("--%s is nothing for a --head, which starts nothing", f.Name)
		}
	})
	if err != nil {
		return err
	}
	if err := v.hostList(o); err != nil {
		return err
	}
	if err := checkHosts(o.hosts, 0); err != nil {
		return err
	}
	x := &hold{name: c.head, slots: slotCount(o.hosts), office: c.manager, verbose: o.Verbose}
	switch {
	case c.slots < 0 || c.slots > maxRanks:
		return usagef("--slots %d: not a number of processes from 0 to %d", c.slots, maxRanks)
	case c.manager != "" && c.policy != "":
		return usagef("--manager and --policy: one of them decides")
	case c.discover != "" && c.watchHostfile:
		return usagef("--discover and --watch-hostfile: one of them decides")
	case c.watchHostfile && v.hostfile == "":
		return usagef("--watch-hostfile needs a --hostfile")
	case c.slots > 0 && (c.discover != "" || c.watchHostfile):
		return usagef("--slots %d: the slots are those of the list", c.slots)
	case c.slots > 0:
		x.slots = c.slots
	}
	if c.manager == "" {
		if c.policy == "" {
			c.policy = rm.Easy{}.Name()
		}
		i := slices.IndexFunc(rm.Policies(), func(p rm.Policy) bool { return p.Name() == c.policy })
		if i < 0 {
			return usagef("--policy %s: not slots, fifo, firstfit, easy, dmr or ascent", c.policy)
		}
		x.policy = rm.Policies()[i]
	}
	x.looks = v.list(0)
	o.hold = x
	return nil
}

// bound brings what a program says of its sizes within the bounds of the command line.
func (c *changeValues) bound(col *rm.COL) error {
	col.Min, col.Max = max(col.Min, c.min), atMost(col.Max, c.max)
	if err := col.Check(); err != nil {
		return fmt.Errorf("with --min %d and --max %d: %w", c.min, c.max, err)
	}
	return nil
}

// atMost is the smaller of two bounds, of which 0 is none.
func atMost(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
