// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Hosts sums up the processes of each host that have not ended.
func Hosts(rows []Row) []Row {
	var hosts []Row
	place := map[string]int{}
	waiting := map[string]map[string]int{} // by host and operation
	for i := range rows {
		r := &rows[i]
		if r.Gone {
			continue
		}
		k, ok := place[r.Host]
		if !ok {
			k = len(hosts)
			place[r.Host], waiting[r.Host] = k, map[string]int{}
			hosts = append(hosts, Row{Name: r.Host, Host: r.Host, order: k})
		}
		h := &hosts[k]
		h.Ranks++
		h.Memory += r.Memory
		h.add(&r.Rates)
		h.Known = h.Known || r.Known
		h.Fresh = h.Fresh || r.Fresh
		if h.Waited = max(h.Waited, r.Waited); r.Waits != "" {
			waiting[r.Host][r.Waits]++
		}
	}
	for i := range hosts {
		h := &hosts[i]
		h.Waits = counts(waiting[h.Host])
		if h.Name == "" {
			h.Name = "this host"
		}
	}
	return hosts
}

// counts lists what processes do, the most frequent first.
func counts(of map[string]int) string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, of[name])
	}
	return strings.Join(names, ", ")
}

// Total sums up all rows.
func Total(rows []Row) Row {
	var t Row
	for i := range rows {
		if r := &rows[i]; !r.Gone {
			t.Ranks += r.Ranks
			t.Memory += r.Memory
			t.add(&r.Rates)
			t.Known = t.Known || r.Known
		}
	}
	return t
}
