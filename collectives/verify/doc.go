// SPDX-License-Identifier: Apache-2.0

// Package verify proves schedules for given sizes, roots and counts: the rules
// of a schedule, the result, and the costs that an algorithm declares. It runs
// all ranks on symbols, so that nothing depends on values.
package verify
