// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is a setting whose value is one of several names, or with List a
// comma-separated list of them.
type Choice struct {
	Env   string   // variable of the environment
	Names []string // admitted values
	List  bool
}

// The settings of package mam with named values. The first name leaves the choice to
// the module.
var (
	MamProcess = Choice{Env: "GOMPI_MAM_SPAWN_METHOD", Names: []string{"auto", "baseline", "merge"}}
	MamSpawn   = Choice{
		Env:   "GOMPI_MAM_SPAWN_STRATS",
		Names: []string{"auto", "all", "background", "single", "intercomm", "multiple", "parallel", "sequential"},
		List:  true,
	}
	MamPlacement = Choice{Env: "GOMPI_MAM_PHYSICAL_DISTRIBUTION_METHOD", Names: []string{"auto", "spread", "compact"}}
	MamMethod    = Choice{Env: "GOMPI_MAM_RED_METHOD", Names: []string{"auto", "col", "p2p", "rma-lock", "rma-lockall", "pull", "inplace"}}
	MamStrategy  = Choice{Env: "GOMPI_MAM_RED_STRATS", Names: []string{"auto", "blocking", "nb", "t", "wd"}}
	MamTrack     = Choice{Env: "GOMPI_MAM_TRACK", Names: []string{"auto", "off"}}
)

// The settings of package mam that are numbers.
var (
	MamTargets = Range{
		Env:  "GOMPI_MAM_NUM_TARGETS",
		Min:  1,
		Max:  1 << 24,
		Unit: "processes",
	}
	MamThreads = Range{
		Env:  "GOMPI_MAM_THREADS",
		Min:  1,
		Max:  256,
		Unit: "threads",
	}
)

// MamModel is the variable of package mam that names the file of a machine model.
// internal/resize/cost chooses methods by this model.
const MamModel = "GOMPI_MAM_MODEL"

// Parse reads a value and returns the indices of its names. The error does not name
// the setting.
func (c Choice) Parse(text string) ([]int, error) {
	var list []int
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(c.Names, strings.ToLower(strings.TrimSpace(name)))
		switch {
		case i < 0:
			return nil, fmt.Errorf("%q is not one of %s", name, strings.Join(c.Names, ", "))
		case len(list) > 0 && !c.List:
			return nil, fmt.Errorf("%q is more than one of %s", text, strings.Join(c.Names, ", "))
		}
		list = append(list, i)
	}
	return list, nil
}
