// SPDX-License-Identifier: Apache-2.0

package cost

// Builtin is a model of a machine of two processors with Linux 6. It is an estimate from single
// measurements on a busy machine, and not a fit. A choice depends on ratios, which differ less
// between machines than times do. gompibench tune redist fits a model.
var Builtin = Model{
	Touch: 0.35,
	Lines: map[string]map[string]Coefficients{
		"shm": {
			"col":         {Start: 300, Array: 60, Byte: 0.16, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"p2p":         {Start: 320, Array: 60, Byte: 0.16, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"rma-lock":    {Start: 700, Array: 400, Byte: 0.13, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"rma-lockall": {Start: 700, Array: 400, Byte: 0.13, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"pull":        {Start: 300, Array: 100, Byte: 0.13, Omega: 1, Crowded: 1.2, Share: 0.15},
		},
		"inproc": {
			"col":         {Start: 100, Array: 30, Byte: 0.08, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"p2p":         {Start: 100, Array: 30, Byte: 0.08, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"rma-lock":    {Start: 200, Array: 100, Byte: 0.06, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"rma-lockall": {Start: 200, Array: 100, Byte: 0.06, Omega: 1.1, Crowded: 1.3, Share: 0.15},
			"pull":        {Start: 100, Array: 50, Byte: 0.06, Omega: 1, Crowded: 1.2, Share: 0.15},
		},
		"tcp": {
			"col":         {Start: 800, Array: 200, Byte: 0.9, Omega: 1.3, Crowded: 1.5, Share: 0.15},
			"p2p":         {Start: 800, Array: 200, Byte: 0.9, Omega: 1.3, Crowded: 1.5, Share: 0.15},
			"rma-lock":    {Start: 1500, Array: 800, Byte: 1.1, Omega: 1.3, Crowded: 1.5, Share: 0.15},
			"rma-lockall": {Start: 1500, Array: 800, Byte: 1.1, Omega: 1.3, Crowded: 1.5, Share: 0.15},
			"pull":        {Start: 1000, Array: 300, Byte: 1.1, Omega: 1.2, Crowded: 1.4, Share: 0.15},
		},
	},
}
