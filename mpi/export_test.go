// SPDX-License-Identifier: Apache-2.0

package mpi

import "gompi/collectives"

// SetNeighbors gives c a neighborhood without a topology, for tests; see
// neighbors.
func (c *Comm) SetNeighbors(dests, sources, blocks []int32) {
	c.core.topo = &topology{near: &neighbors{dests, sources, blocks}}
}

// Nodes says which ranks of c share a host, as collectives know it.
func (c *Comm) Nodes() *collectives.Nodes { return c.core.Nodes }

// PartOf is partOf.
func PartOf(words []int, ranks int, weighted bool) (DistGraph, bool) {
	return partOf(words, ranks, weighted)
}

// SharedRoom is the room of one cell in memory that the ranks share.
func SharedRoom(c *Comm) int64 { return c.core.Ctx.SharedRoom() }

// HasMemory reports whether c's board is made, without a call on c.
func HasMemory(c *Comm) bool {
	place := c.core.Engine.Offer(c.core.Ctx)
	c.core.Engine.TakeBack(c.core.Ctx, place)
	return place != 0
}
