// SPDX-License-Identifier: Apache-2.0

//go:build race

package remote

// underRace: the race detector is on.
const underRace = true
