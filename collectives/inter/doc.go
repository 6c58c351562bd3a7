// SPDX-License-Identifier: Apache-2.0

// Package inter holds the algorithms of intercommunicators, between two groups
// of ranks. The scalable ones have stages, flat algorithms inside a group.
package inter
