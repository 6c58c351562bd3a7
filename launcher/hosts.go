// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"net"
	"os"
	"strconv"
	"strings"

	"gompi/internal/control/protocol"
	"gompi/internal/host/cgroup"
)

// maxRanks is the largest number of processes that one command starts.
const maxRanks = protocol.MaxSpawn

// hostSlots is one host of -H or of a host file.
type hostSlots struct {
	name     string
	slots    int // 0: not given
	maxSlots int // 0: no limit
}

// parseHosts reads "h1:4,h2".
func parseHosts(list string) ([]hostSlots, error) {
	var hs []hostSlots
	for item := range strings.SplitSeq(list, ",") {
		h, ok := parseHost(item)
		if !ok {
			return nil, usagef("-H %s: %q is not NAME or NAME:SLOTS", list, item)
		}
		hs = append(hs, h)
	}
	return hs, nil
}

// parseHost reads "NAME", "NAME:SLOTS" or an address in brackets.
func parseHost(item string) (h hostSlots, ok bool) {
	name, slots := item, ""
	if i := strings.LastIndexByte(item, ':'); i >= 0 && (strings.Count(item, ":") == 1 || strings.HasPrefix(item[:i], "[") && strings.HasSuffix(item[:i], "]")) {
		name, slots = item[:i], item[i+1:]
		n, err := strconv.Atoi(slots)
		if err != nil || n < 1 {
			return h, false
		}
		h.slots = n
	}
	h.name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return h, h.name != "" && !strings.ContainsAny(h.name, " \t=")
}

// parseHostfile reads lines "NAME[:SLOTS] [slots=N] [max_slots=N] # remark".
func parseHostfile(file, text string) ([]hostSlots, error) {
	var hs []hostSlots
	line := 0
	for l := range strings.Lines(text) {
		line++
		l, _, _ = strings.Cut(l, "#")
		f := strings.Fields(l)
		if len(f) == 0 {
			continue
		}
		h, ok := parseHost(f[0])
		if !ok {
			return nil, usagef("%s:%d: %q is not a host", file, line, f[0])
		}
		for _, opt := range f[1:] {
			key, val, _ := strings.Cut(opt, "=")
			n, err := strconv.Atoi(val)
			if err != nil || n < 1 {
				return nil, usagef("%s:%d: %q is not slots=N or max_slots=N", file, line, opt)
			}
			switch key {
			case "slots":
				h.slots = n
			case "max_slots", "max-slots":
				h.maxSlots = n
			default:
				return nil, usagef("%s:%d: %q is not slots=N or max_slots=N", file, line, opt)
			}
		}
		if h.maxSlots > 0 && h.slots > h.maxSlots {
			return nil, usagef("%s:%d: host %s has slots=%d above max_slots=%d", file, line, h.name, h.slots, h.maxSlots)
		}
		hs = append(hs, h)
	}
	if len(hs) == 0 {
		return nil, usagef("%s: no host in it", file)
	}
	return hs, nil
}

// slotCount returns the number of processes to start if none is given.
func slotCount(hs []hostSlots) int {
	if len(hs) == 0 {
		return cgroup.UsableCPUs()
	}
	n := 0
	for _, h := range hs {
		n += max(1, h.slots)
	}
	return n
}

// checkHosts refuses hosts other than this one, and more ranks than the max_slots of all
// hosts admit.
func checkHosts(hs []hostSlots, ranks int) error {
	limit, limited := 0, len(hs) > 0
	for _, h := range hs {
		if !isThisHost(h.name) {
			return usagef("host %s is not this host; this version of gompirun starts processes on this host only", h.name)
		}
		if h.maxSlots == 0 {
			limited = false
		}
		limit += h.maxSlots
	}
	if limited && ranks > limit {
		return usagef("host %s: max_slots is %d, %d processes were asked for", hs[0].name, limit, ranks)
	}
	return nil
}

// isThisHost reports whether a name or address is this host's. It asks no name server:
// that may take long, and other hosts are refused anyway.
func isThisHost(name string) bool {
	own, _ := os.Hostname()
	short, _, _ := strings.Cut(own, ".")
	switch {
	case strings.EqualFold(name, "localhost"), own != "" && (strings.EqualFold(name, own) || strings.EqualFold(name, short)):
		return true
	}
	ip := net.ParseIP(name)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
