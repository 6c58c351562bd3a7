// SPDX-License-Identifier: Apache-2.0

// Package layout says which elements of distributed data each of some ranks has, and
// which of them go from where to where when there are more or fewer ranks. Everything in
// it is a pure function of values that all ranks have, so nobody asks anybody.
//
// A [Layout] is the rule, for any number of ranks; it travels as JSON. A [Split] is what
// the rule gives for one number. A rank has its elements in ascending order of their
// numbers in the whole. docs/design/030-malleability-module.md
package layout
