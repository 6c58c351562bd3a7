// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"gompi/bench"
	"gompi/bench/report"
	"gompi/mpi"
)

// spawnCommand is a parsed `gompibench spawn`.
type spawnCommand struct {
	opt   bench.SpawnOptions
	json  bool
	np    int
	spare int
}

func (c *spawnCommand) flags() *pflag.FlagSet {
	f := newFlagSet("spawn")
	f.IntSliceVar(&c.opt.Counts, "count", []int{4}, "how many processes are spawned at a time: `N1,N2,...`")
	f.IntVar(&c.opt.Rounds, "rounds", bench.DefaultSpawnRounds, "spawns of each count")
	f.DurationVar(&c.opt.Pause, "pause", 300*time.Millisecond, "`TIME` between two spawns, for processes to end (0: none)")
	f.IntVar(&c.np, "np", 1, "parents, when started without gompirun")
	f.IntVar(&c.spare, "spare", 0, "processes that are kept ready, when started without gompirun (gompirun --spare)")
	outputFlags(f, &c.json, &c.opt.Transport)
	return f
}

// parseSpawn reads the arguments after "spawn".
func parseSpawn(args []string) (*spawnCommand, error) {
	c := &spawnCommand{}
	f := c.flags()
	if err := parseNoArgs(f, args); err != nil {
		return nil, err
	}
	switch {
	case c.spare < 0 || c.opt.Pause < 0:
		return nil, fmt.Errorf("--spare %d and --pause %v must not be below 0", c.spare, c.opt.Pause)
	case c.opt.Rounds < 1 || c.np < 1 || len(c.opt.Counts) == 0:
		return nil, fmt.Errorf("--rounds %d, --np %d and --count %v must be at least 1", c.opt.Rounds, c.np, c.opt.Counts)
	}
	for _, n := range c.opt.Counts {
		if n < 1 {
			return nil, fmt.Errorf("--count %d must be at least 1", n)
		}
	}
	return c, nil
}

func runSpawn(args []string) {
	c, err := parseSpawn(args)
	exitOn(err, spawnUsage)
	if !launched() {
		exit(launch(c.np, false, "--spare", strconv.Itoa(c.spare)))
	}
	mpi.Main(c.run)
}

func spawnUsage() string {
	return "usage: gompirun -np PARENTS gompibench spawn [flags]\n" +
		"       gompibench spawn [flags]   (starts itself under gompirun)\n\n" +
		"Measures CommSpawn of all parents together: milliseconds until it has returned, when all\n" +
		"children have joined [msec], the least and the most [msec_max] of the rounds, and what\n" +
		"IntercommMerge takes after it [merge_msec]. Then all part by Disconnect, and the children end.\n\nflags:\n" +
		new(spawnCommand).flags().FlagUsages()
}

// run runs in parents and children.
func (c *spawnCommand) run(ctx context.Context, world *mpi.Comm) error {
	return bench.Spawn(ctx, world, c.opt, printer(c.json, report.SpawnHeader, report.SpawnRow))
}
