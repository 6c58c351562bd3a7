// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gompi/launcher/pool"
	"gompi/launcher/rm"
)

// chooseManager chooses the resource manager of the job, and the source of its slots.
func (v *flagValues) chooseManager(o *options) error {
	c := &v.changes
	deciders := given(map[string]bool{"--schedule": c.schedule != "", "--manager": c.manager != "", "--policy": c.policy != ""})
	lists := given(map[string]bool{"--discover": c.discover != "", "--watch-hostfile": c.watchHostfile})
	if c.to != "" {
		return v.setLease(o, append(deciders, lists...))
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
		o.changes.driver = newDriver("--schedule", rm.NewSchedule(list))
	case c.manager != "":
		o.changes.manager = c.manager
	case c.policy != "":
		return v.setPolicy(o)
	case len(lists) > 0:
		o.changes.driver = newDriver(lists[0], &rm.Follow{})
	}
	v.watchSlots(o)
	return nil
}

// given returns the flags that were given, sorted.
func given(flags map[string]bool) (list []string) {
	for name, is := range flags {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// watchSlots lets the driver watch a list of hosts, if one is given.
func (v *flagValues) watchSlots(o *options) {
	if d := v.hostWatch(len(o.fakeHosts)); d != nil {
		o.changes.driver.watch = d.watch
	}
}

// hostWatch returns the list of hosts that a file or command provides, or nil.
func (v *flagValues) hostWatch(fakes int) *discovery {
	c := &v.changes
	d := &discovery{flag: "--discover", command: c.discover, names: hostNames(fakes), every: readEvery}
	switch {
	case c.watchHostfile:
		d.flag, d.file = "--watch-hostfile", v.hostfile
	case c.discover == "":
		return nil
	}
	return d
}

// setPolicy makes a policy the manager.
func (v *flagValues) setPolicy(o *options) error {
	c := &v.changes
	// The other policies never resize a job that does not ask for it.
	policies := []rm.Policy{rm.DMR{}, rm.Ascent{}}
	i := slices.IndexFunc(policies, func(p rm.Policy) bool { return p.Name() == c.policy })
	if i < 0 {
		return usagef("--policy %s: not dmr or ascent", c.policy)
	}
	col, err := c.scaling()
	if err != nil {
		return err
	}
	d := newDriver("--policy", rm.NewShared(rm.Config{Policy: policies[i]}))
	d.leased, d.bound, d.col = true, c.bound, col
	o.changes.driver = d
	if v.watchSlots(o); d.watch != nil {
		return nil // the list has the number of slots
	}
	d.setSlots(cmp.Or(o.changes.slots, slotCount(o.hosts)))
	return nil
}

// scaling returns the COL of the command line.
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

// setLease hands the job to a head of several jobs.
func (v *flagValues) setLease(o *options, others []string) error {
	c := &v.changes
	if len(others) > 0 {
		return usagef("--to %s and %s: the head decides", c.to, strings.Join(others, ", "))
	}
	if o.fakeHosts != nil {
		return usagef("--to %s with --%s", c.to, fakeHostsFlag)
	}
	if err := pool.CheckName(c.to); err != nil {
		return usageError{err}
	}
	col, err := c.scaling()
	if err != nil {
		return err
	}
	o.lease = &leasedJob{name: c.to, col: col, bound: c.bound, slots: o.changes.slots}
	if len(o.Apps) > 1 || v.set.Changed("np") {
		o.lease.start = o.ranks()
	}
	return nil
}

// queueFlags are the flags that a head of several jobs takes.
var queueFlags = []string{"head", "slots", "host", "hostfile", "policy", "manager", "discover", "watch-hostfile", "verbose"}

// setJobQueue makes this gompirun a head of several jobs.
func (v *flagValues) setJobQueue(o *options) error {
	c := &v.changes
	if err := pool.CheckName(c.head); err != nil {
		return usageError{err}
	}
	if rest := v.set.Args(); len(rest) > 0 {
		return usagef("--head %s starts no process: gompirun --to %s %s hands it a job", c.head, c.head, rest[0])
	}
	var err error
	v.set.Visit(func(f *pflag.Flag) {
		if !slices.Contains(queueFlags, f.Name) && err == nil {
			err = usagef("--%s cannot be used with --head, which starts no process", f.Name)
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
	x := &jobQueue{name: c.head, slots: slotCount(o.hosts), socket: c.manager, verbose: o.Verbose}
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
	x.hosts = v.hostWatch(0)
	o.queue = x
	return nil
}

// bound limits the sizes in a COL by --min and --max.
func (c *changeValues) bound(col *rm.COL) error {
	col.Min, col.Max = max(col.Min, c.min), atMost(col.Max, c.max)
	if err := col.Check(); err != nil {
		return fmt.Errorf("with --min %d and --max %d: %w", c.min, c.max, err)
	}
	return nil
}

// atMost returns the smaller of two bounds; 0 is no bound.
func atMost(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
