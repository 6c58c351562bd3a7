// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"math"
	"slices"

	"gompi/collectives"
	"gompi/internal/base/fault"
)

// Collectives that tell each other the lengths and allocate what they receive:
// two collective calls each. Both are counted on every rank: one that cannot
// make the second refuses it.

const (
	opGatherNew    fault.Call = "GatherNew"
	opAllgatherNew fault.Call = "AllgatherNew"
	opScatterNew   fault.Call = "ScatterNew"
	opBcastNew     fault.Call = "BcastNew"
	opAlltoallNew  fault.Call = "AlltoallNew"
)

// GatherNew collects the slices of all ranks, which may have different lengths,
// on rank root: a new slice for each rank, which lie side by side in memory. nil
// elsewhere. Collective.
func GatherNew[T any](c *Comm, send []T, root int) ([][]T, error) {
	if err := c.exists(opGatherNew); err != nil {
		return nil, err
	}
	var counts []int
	if c.collects(root) {
		counts = make([]int, c.core.Targets)
	}
	err := new(call).gather(c, BufOf([]int{len(send)}), BufOf(counts), root).as(opGatherNew).run()
	all, err := blocksOf[T](c, opGatherNew, counts, err)
	if err != nil {
		return nil, c.refuseSecond(collectives.OpGatherv, opGatherNew, err)
	}
	err = new(call).gatherv(c, BufOf(send), BufOf(all), counts, nil, root).as(opGatherNew).run()
	return cut(all, counts), err
}

// AllgatherNew is GatherNew on all ranks. Collective.
func AllgatherNew[T any](c *Comm, send []T) ([][]T, error) {
	if err := c.exists(opAllgatherNew); err != nil {
		return nil, err
	}
	counts := make([]int, c.core.Targets)
	err := new(call).allgather(c, BufOf([]int{len(send)}), BufOf(counts)).as(opAllgatherNew).run()
	all, err := blocksOf[T](c, opAllgatherNew, counts, err)
	if err != nil {
		return nil, c.refuseSecond(collectives.OpAllgatherv, opAllgatherNew, err)
	}
	err = new(call).allgatherv(c, BufOf(send), BufOf(all), counts, nil).as(opAllgatherNew).run()
	return cut(all, counts), err
}

// ScatterNew gives each rank a new slice that is a copy of its block of send on
// rank root, which has one block for each rank; elsewhere send is not used.
// Collective.
func ScatterNew[T any](c *Comm, send [][]T, root int) ([]T, error) {
	if err := c.exists(opScatterNew); err != nil {
		return nil, err
	}
	var counts []int
	var wrong error
	if c.collects(root) {
		counts, wrong = c.lengths(opScatterNew, lens(send))
	} else {
		send = nil
	}
	n := make([]int, 1)
	var err error
	if wrong == nil {
		err = new(call).scatter(c, BufOf(counts), BufOf(n), root).as(opScatterNew).run()
	} else {
		err = c.refuseSecond(collectives.OpScatter, opScatterNew, wrong)
	}
	mine, err := blocksOf[T](c, opScatterNew, n, err)
	if err != nil {
		return nil, c.refuseSecond(collectives.OpScatterv, opScatterNew, err)
	}
	err = new(call).scatterv(c, BufOf(slices.Concat(send...)), counts, nil, BufOf(mine), root).as(opScatterNew).run()
	return mine, err
}

// BcastNew gives every rank the slice of rank root: a new one of its length,
// and on root the slice itself. Elsewhere buf is not used. Collective.
func BcastNew[T any](c *Comm, buf []T, root int) ([]T, error) {
	if err := c.exists(opBcastNew); err != nil {
		return nil, err
	}
	n := []int{0}
	if c.collects(root) {
		n[0] = len(buf)
	}
	err := new(call).bcast(c, BufOf(n), root).as(opBcastNew).run()
	if !c.collects(root) {
		buf, err = blocksOf[T](c, opBcastNew, n, err)
	}
	if err != nil {
		return nil, c.refuseSecond(collectives.OpBcast, opBcastNew, err)
	}
	return buf, new(call).bcast(c, BufOf(buf), root).as(opBcastNew).run()
}

// AlltoallNew sends send[i] to rank i and returns what the ranks sent here: a
// new slice for each, which lie side by side in memory. send has one block for
// each rank. Collective.
func AlltoallNew[T any](c *Comm, send [][]T) ([][]T, error) {
	if err := c.exists(opAlltoallNew); err != nil {
		return nil, err
	}
	in := make([]int, c.core.Targets)
	out, err := c.lengths(opAlltoallNew, lens(send))
	if err == nil {
		err = new(call).alltoall(c, BufOf(out), BufOf(in)).as(opAlltoallNew).run()
	} else {
		err = c.refuseSecond(collectives.OpAlltoall, opAlltoallNew, err)
	}
	all, err := blocksOf[T](c, opAlltoallNew, in, err)
	if err != nil {
		return nil, c.refuseSecond(collectives.OpAlltoallv, opAlltoallNew, err)
	}
	err = new(call).alltoallv(c, BufOf(slices.Concat(send...)), out, nil, BufOf(all), in, nil).as(opAlltoallNew).run()
	return cut(all, in), err
}

// collects reports whether the caller is the root that other ranks name.
func (c *Comm) collects(root int) bool {
	if c.core.Both != nil {
		return root == Root
	}
	return root == c.core.Rank
}

// refuseSecond counts a part of a call that is not made, and returns why.
func (c *Comm) refuseSecond(kind collectives.Op, op fault.Call, why error) error {
	a := new(call)
	a.begin(c, kind)
	return a.as(op).refuse(why)
}

func lens[T any](blocks [][]T) []int {
	n := make([]int, len(blocks))
	for i, b := range blocks {
		n[i] = len(b)
	}
	return n
}

// lengths checks that there is one for each rank.
func (c *Comm) lengths(op fault.Call, n []int) ([]int, error) {
	if len(n) != c.core.Targets {
		return nil, c.fail(&argFault{class: ErrCount, op: op, got: int64(len(n)), want: int64(c.core.Targets), unit: "blocks to send"})
	}
	return n, nil
}

// blocksOf makes room for as many elements as other ranks say, if err is nil.
func blocksOf[T any](c *Comm, op fault.Call, counts []int, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	size, total := typeOf[T]().Size, int64(0)
	for r, n := range counts {
		if n < 0 || int64(n) > (math.MaxInt64-total)/max(1, size) {
			return nil, c.fail(&argFault{class: ErrCount, op: op, at: atPeer(r), err: fmt.Errorf("it sends %d elements", n)})
		}
		total += int64(n) * size
	}
	if err := c.roomFor(op, &Status{Source: ProcNull, Tag: -1, Bytes: total}); err != nil {
		return nil, err
	}
	n := 0
	for _, k := range counts {
		n += k
	}
	return make([]T, n), nil
}

// cut gives the blocks of all.
func cut[T any](all []T, counts []int) [][]T {
	if counts == nil {
		return nil
	}
	blocks := make([][]T, len(counts))
	for i, n := range counts {
		blocks[i], all = all[:n:n], all[n:]
	}
	return blocks
}
