// SPDX-License-Identifier: Apache-2.0

// Package selection chooses the algorithm of a collective call: a table of
// rules, built in or measured, and names that are forced. It looks only at what
// all ranks know, so that they choose alike.
package selection
