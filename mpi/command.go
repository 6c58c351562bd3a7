// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/control/protocol"
)

// Command is a program to start, how often and how: the arguments of MPI_Comm_spawn, and
// the keys of its info argument that MPI reserves.
type Command struct {
	// Program is the name or the path of a program, which is looked for as gompirun
	// does. "": the program and the arguments that root runs.
	Program string
	Args    []string // without the program's name
	// Procs is how many processes of it there are to be, at least one.
	Procs int
	// Soft says how many will do if there are not so many slots (info key soft): numbers
	// and ranges "a", "a:b" or "a:b:c", from a to b by c, with commas between. The largest
	// number that there are slots for is taken; numbers above Procs do not count. "":
	// Procs alone.
	Soft string
	// Hosts are where the processes start, by the names of the job's hosts (host); nil:
	// anywhere. They fill the slots of these hosts first, and are then spread over them.
	Hosts []string
	// Dir is their directory (wdir), from that of the first program of gompirun's command
	// line on, which is also the default.
	Dir string
	// Path is where Program is looked for, directories with colons between (path); "":
	// on the PATH that the processes will have. Dir is looked in last.
	Path string
	// Env is set in their environment, NAME=VALUE, beside what gompirun gives all.
	Env []string
}

// part is the command as the head takes it.
func (c *Command) part() (protocol.SpawnPart, error) {
	p := protocol.SpawnPart{N: c.Procs, Hosts: c.Hosts, LaunchEnv: protocol.LaunchEnv{Dir: c.Dir, Path: c.Path, Env: c.Env}}
	switch {
	case c.Procs < 1 || c.Procs > protocol.MaxSpawn:
		return p, fmt.Errorf("%d processes, 1 to %d allowed", c.Procs, protocol.MaxSpawn)
	case c.Program == "" && len(c.Args) > 0:
		return p, fmt.Errorf("%d arguments, but no program", len(c.Args))
	case c.Program != "":
		p.Argv = append([]string{c.Program}, c.Args...)
	}
	for _, s := range c.Env {
		if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
			return p, fmt.Errorf("%q is not NAME=VALUE", s)
		}
	}
	for _, list := range [...][]string{p.Argv, c.Env, {c.Dir, c.Path}} {
		for _, s := range list {
			if strings.ContainsRune(s, 0) {
				return p, fmt.Errorf("%q has a byte 0", s)
			}
		}
	}
	var err error
	p.Will, err = soft(c.Soft, c.Procs)
	return p, err
}

// soft reads numbers "a:b:c,...", as far as they are not above most.
func soft(text string, most int) (list []protocol.Counts, err error) {
	if text == "" {
		return nil, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		var n [3]int
		words := strings.Split(strings.TrimSpace(item), ":")
		if len(words) > len(n) {
			return nil, softError(item)
		}
		for i, w := range words {
			if n[i], err = strconv.Atoi(w); err != nil {
				return nil, softError(item)
			}
		}
		from, to, step := n[0], n[1], n[2]
		switch len(words) {
		case 1:
			to, step = from, 1
		case 2:
			step = 1
		}
		if step == 0 {
			return nil, softError(item)
		}
		if step < 0 { // from above: the same numbers from below
			if from < to {
				continue
			}
			from, to, step = from+(from-to)/-step*step, from, -step
		}
		if from < 0 { // no number of processes is negative
			from += (-from + step - 1) / step * step
		}
		if to = min(to, most); from > to {
			continue
		}
		list = append(list, protocol.Counts{From: uint32(from), To: uint32(to), Step: uint32(min(step, protocol.MaxSpawn))})
	}
	if len(list) > protocol.MaxCounts {
		return nil, fmt.Errorf("soft: %d ranges, at most %d allowed", len(list), protocol.MaxCounts)
	}
	return list, nil
}

func softError(item string) error {
	return fmt.Errorf("soft: %q is not a, a:b or a:b:c", item)
}
