// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gompi/launcher/rm"
)

// decides settles who decides about the size of the job, and who says how many slots
// there are.
func (v *flagValues) decides(o *options) error {
	c := &v.changes
	deciders := given(map[string]bool{"--schedule": c.schedule != "", "--manager": c.manager != "", "--policy": c.policy != ""})
	lists := given(map[string]bool{"--discover": c.discover != "", "--watch-hostfile": c.watchHostfile})
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
		return usagef("--col %s is for a --policy", c.col)
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
	c := &v.changes
	d := &discovery{flag: "--discover", command: c.discover, names: hostNames(len(o.pretend)), every: lookEvery}
	switch {
	case c.watchHostfile:
		d.flag, d.file = "--watch-hostfile", v.hostfile
	case c.discover == "":
		return
	}
	o.changes.steward.watch = d.watch
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
	col := &rm.COL{Version: 1}
	if c.col != "" {
		text, err := os.ReadFile(c.col)
		if err != nil {
			return usageError{err}
		}
		if col, err = rm.ParseCOL(text); err != nil {
			return usagef("--col %s: %w", c.col, err)
		}
	}
	if err := c.bound(col); err != nil {
		return usagef("--policy, %w", err)
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
