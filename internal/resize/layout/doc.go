// SPDX-License-Identifier: Apache-2.0

// Package layout says which elements of distributed data each rank has, and which elements
// move where when the number of ranks changes. All functions are pure functions of values
// that all ranks have, so the ranks exchange no messages.
//
// A [Layout] is a rule for any number of ranks; it travels as JSON. A [Split] is the result
// of the rule for one number of ranks. [Receives] and [Sends] list the transfers between two
// splits. A rank has its elements in ascending order of their global indices. See
// docs/design/030-malleability-module.md.
package layout
