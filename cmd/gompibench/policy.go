// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gompi/bench/report"
	"gompi/launcher/rm"
	"gompi/launcher/rm/sim"
)

const policyUsage = `usage: gompibench policy [flags] [FILE]

Runs a mix of jobs under policies of sharing out the slots, in virtual time: no
processes are started. FILE has a job a line (- is standard input); without one a
day of jobs is made up.

  gompibench policy --plot=day.svg
  gompibench policy --jobs 500 --slots 64 --mix > mix.json
  gompibench policy --policy easy,ascent --slots 64 mix.json
  gompibench policy --optimum 1000

`

const policyNotes = `
A job: {"name": "", "at": seconds, "work": seconds of one process, "np": processes to
begin with, "limit": seconds, "follows": true if it may be resized, "col": its COL}.
util: share of the slots that jobs had; eff: work done for each second of a slot;
stopped: share of what they had in which they stood still for changes. --optimum: what
one decision gains, as a share of what the best one gains, by brute force.
docs/design/029-resource-managers.md says more.
`

// policyBench is a parsed command line of `gompibench policy`.
type policyBench struct {
	policies []rm.Policy
	file     string
	names    string
	slots    int
	host     int
	jobs     int
	hours    float64
	seed     uint64
	horizon  time.Duration
	optimum  int
	plot     string
	json     bool
	mix      bool
}

// defaultPolicyPlot is the file of --plot without one.
const defaultPolicyPlot = "policy.svg"

func (c *policyBench) flags() *pflag.FlagSet {
	f := newFlagSet("policy")
	f.StringVar(&c.names, "policy", "", "`NAMES` of policies, such as easy,ascent (default: all)")
	f.IntVar(&c.slots, "slots", 256, "slots that there are")
	f.IntVar(&c.host, "host-slots", 0, "slots of a host, for jobs that take hosts whole (0: there are no hosts)")
	f.IntVar(&c.jobs, "jobs", 10000, "jobs of a mix that is made up")
	f.Float64Var(&c.hours, "hours", 24, "in which they come")
	f.Uint64Var(&c.seed, "seed", 1, "which mix is made up")
	f.DurationVar(&c.horizon, "horizon", 10*time.Minute, "`TIME` within which a change must save more than it costs")
	f.IntVar(&c.optimum, "optimum", 0, "compare with the brute force in `N` small cases instead")
	f.StringVar(&c.plot, "plot", "", "draw the utilisation as SVG to `FILE`")
	f.Lookup("plot").NoOptDefVal = defaultPolicyPlot
	f.BoolVar(&c.json, "json", false, "one JSON object a line instead of a table")
	f.BoolVar(&c.mix, "mix", false, "print the mix instead")
	return f
}

func parsePolicy(args []string) (*policyBench, error) {
	c := &policyBench{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 1:
		return nil, fmt.Errorf("policy: %d files, one is run", f.NArg())
	case c.slots < 1 || c.host < 0 || c.jobs < 1 || c.jobs > sim.MaxJobs || !(c.hours > 0 && c.hours < 1e5) || c.horizon <= 0 || c.optimum < 0:
		return nil, fmt.Errorf("policy: --slots %d, --host-slots %d, --jobs %d (at most %d), --hours %v, --horizon %v, --optimum %d", c.slots, c.host, c.jobs, sim.MaxJobs, c.hours, c.horizon, c.optimum)
	case c.optimum > 0 && (c.plot != "" || c.mix || f.NArg() > 0):
		return nil, errors.New("policy: --optimum makes its own cases, and draws nothing")
	}
	c.file = f.Arg(0)
	all := rm.Policies()
	if c.names == "" {
		c.policies = all
		return c, nil
	}
	for name := range strings.SplitSeq(c.names, ",") {
		i := slices.IndexFunc(all, func(p rm.Policy) bool { return p.Name() == name })
		if i < 0 {
			var names []string
			for _, p := range all {
				names = append(names, p.Name())
			}
			return nil, fmt.Errorf("policy: there is no %q; there are %s", name, strings.Join(names, ", "))
		}
		c.policies = append(c.policies, all[i])
	}
	return c, nil
}

// policy implements `gompibench policy`.
func policy(args []string, stdin io.Reader, stdout io.Writer) error {
	c, err := parsePolicy(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(stdout, policyUsage+"flags:\n"+new(policyBench).flags().FlagUsages()+policyNotes)
		return err
	case err != nil:
		return usageError{err}
	case c.optimum > 0:
		return c.gaps(stdout)
	}
	jobs, err := c.read(stdin)
	if err != nil {
		return err
	}
	if c.mix {
		return sim.Write(stdout, jobs)
	}
	return c.run(jobs, stdout)
}

// read reads or makes the mix.
func (c *policyBench) read(stdin io.Reader) ([]sim.Job, error) {
	switch c.file {
	case "":
		return sim.Day(c.jobs, c.slots, time.Duration(c.hours*float64(time.Hour)), c.seed), nil
	case "-":
		return sim.Read("standard input", stdin)
	}
	f, err := os.Open(c.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sim.Read(c.file, f)
}

// policyLine is a line of --json. Times are in seconds.
type policyLine struct {
	Bench       string  `json:"bench"`
	Policy      string  `json:"policy"`
	Jobs        int     `json:"jobs"`
	Slots       int     `json:"slots"`
	Horizon     float64 `json:"horizon"`
	Makespan    float64 `json:"makespan"`
	Wait        float64 `json:"wait"`
	Turnaround  float64 `json:"turnaround"`
	Utilisation float64 `json:"utilisation"`
	Efficiency  float64 `json:"efficiency"`
	Changes     int     `json:"changes"`
	Stopped     float64 `json:"stopped"`
	Took        float64 `json:"took"` // real time of the simulation
}

// curveParts is the number of points of a drawn line.
const curveParts = 96

func (c *policyBench) run(jobs []sim.Job, stdout io.Writer) error {
	if !c.json {
		if _, err := fmt.Fprintf(stdout, "%d jobs, %d slots, horizon %v\n%-9s %11s %9s %13s %6s %6s %8s %8s %7s\n", len(jobs), c.slots, c.horizon,
			"policy", "makespan h", "wait s", "turnaround s", "util", "eff", "changes", "stopped", "took s"); err != nil {
			return err
		}
	}
	var all []*sim.Result
	last := time.Duration(0)
	for _, p := range c.policies {
		began := time.Now()
		r, err := sim.Run(sim.Config{Manager: rm.NewShared(rm.Config{Policy: p, Horizon: c.horizon}), Slots: c.slots, Host: c.host}, jobs)
		if err != nil {
			return fmt.Errorf("policy %s: %w", p.Name(), err)
		}
		took := time.Since(began).Seconds()
		s := r.Summary(c.slots)
		if c.json {
			err = json.NewEncoder(stdout).Encode(policyLine{"policy", p.Name(), s.Jobs, c.slots, c.horizon.Seconds(), s.Makespan.Seconds(), s.Wait.Seconds(),
				s.Turnaround.Seconds(), s.Utilisation, s.Efficiency, s.Changes, s.Stopped, took})
		} else {
			_, err = fmt.Fprintf(stdout, "%-9s %11.2f %9.0f %13.0f %6.3f %6.3f %8d %8.4f %7.2f\n", p.Name(), s.Makespan.Hours(), s.Wait.Seconds(),
				s.Turnaround.Seconds(), s.Utilisation, s.Efficiency, s.Changes, s.Stopped, took)
		}
		if err != nil {
			return err
		}
		all = append(all, r)
		last = max(last, r.End)
	}
	if c.plot == "" {
		return nil
	}
	f := report.Figure{
		Title: fmt.Sprintf("%d jobs on %d slots", len(jobs), c.slots),
		X:     report.Axis{Label: "hours", Linear: true}, Y: report.Axis{Label: "share of slots taken", Linear: true},
	}
	for i, r := range all {
		line := report.Series{Name: c.policies[i].Name()}
		for k, y := range r.Curve(c.slots, curveParts, last) {
			line.X, line.Y = append(line.X, (float64(k)+0.5)/curveParts*last.Hours()), append(line.Y, y)
		}
		f.Series = append(f.Series, line)
	}
	return writePlot(&f, c.plot, c.json, stdout)
}

// gapLine is a line of --optimum --json.
type gapLine struct {
	Bench  string  `json:"bench"`
	Policy string  `json:"policy"`
	Cases  int     `json:"cases"`
	Mean   float64 `json:"mean"`
	Worst  float64 `json:"worst"`
	Best   float64 `json:"best"` // share of the cases in which the policy reaches the optimum
}

func (c *policyBench) gaps(stdout io.Writer) error {
	gaps, err := sim.Gaps(c.policies, c.optimum, c.seed)
	if err != nil {
		return err
	}
	if !c.json {
		if _, err := fmt.Fprintf(stdout, "%-9s %7s %7s %7s %9s\n", "policy", "cases", "mean", "worst", "optimum"); err != nil {
			return err
		}
	}
	for i, g := range gaps {
		best := float64(g.Best) / float64(max(1, g.Cases))
		if c.json {
			err = json.NewEncoder(stdout).Encode(gapLine{"policy", c.policies[i].Name(), g.Cases, g.Mean, g.Worst, best})
		} else {
			_, err = fmt.Fprintf(stdout, "%-9s %7d %7.3f %7.3f %8.1f%%\n", c.policies[i].Name(), g.Cases, g.Mean, g.Worst, 100*best)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
