// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is a setting that is one of some names, or, with List, several of them.
type Choice struct {
	Env   string
	Names []string
	List  bool
}

// The settings of package mam. The first name leaves the choice to the module.
var (
	MamProcess   = Choice{Env: "GOMPI_MAM_SPAWN_METHOD", Names: []string{"auto", "baseline", "merge"}}
	MamSpawn     = Choice{Env: "GOMPI_MAM_SPAWN_STRATS", Names: []string{"auto", "all", "background", "single", "intercomm", "multiple", "parallel", "sequential"}, List: true}
	MamPlacement = Choice{Env: "GOMPI_MAM_PHYSICAL_DISTRIBUTION_METHOD", Names: []string{"auto", "spread", "compact"}}
	MamMethod    = Choice{Env: "GOMPI_MAM_RED_METHOD", Names: []string{"auto", "col", "p2p", "rma-lock", "rma-lockall", "pull", "inplace"}}
	MamStrategy  = Choice{Env: "GOMPI_MAM_RED_STRATS", Names: []string{"auto", "blocking", "nb", "t", "wd"}}
	MamTrack     = Choice{Env: "GOMPI_MAM_TRACK", Names: []string{"auto", "off"}}
	MamTargets   = Range{"GOMPI_MAM_NUM_TARGETS", 1, 1 << 24, "processes"}
	MamThreads   = Range{"GOMPI_MAM_THREADS", 1, 256, "threads"}
)

// MamModel is a setting of package mam: the model of the machine (see internal/resize/cost) by
// which it chooses.
const MamModel = "GOMPI_MAM_MODEL"

// Parse reads a value that is set, as indices of names. The error does not name the
// setting.
func (c Choice) Parse(text string) ([]int, error) {
	var list []int
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(c.Names, strings.ToLower(strings.TrimSpace(name)))
		switch {
		case i < 0:
			return nil, fmt.Errorf("%q is none of %s", name, strings.Join(c.Names, ", "))
		case len(list) > 0 && !c.List:
			return nil, fmt.Errorf("%q is more than one of %s", text, strings.Join(c.Names, ", "))
		}
		list = append(list, i)
	}
	return list, nil
}
