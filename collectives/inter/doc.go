// SPDX-License-Identifier: Apache-2.0

// Package inter holds the algorithms of intercommunicators, between two groups of ranks,
// one or two in a file. The scalable ones have stages: flat algorithms inside each group,
// and an exchange between the groups.
package inter
