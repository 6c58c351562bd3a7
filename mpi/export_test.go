// SPDX-License-Identifier: Apache-2.0

package mpi

// SetNeighbors gives c a neighborhood without a topology, for tests; see
// neighbors.
func (c *Comm) SetNeighbors(dests, sources, blocks []int32) {
	c.core.topo = &topology{near: &neighbors{dests, sources, blocks}}
}
