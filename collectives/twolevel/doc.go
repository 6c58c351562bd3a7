// SPDX-License-Identifier: Apache-2.0

// Package twolevel holds the algorithms for ranks on several nodes. They run
// flat ones inside each node and between nodes, where one rank stands for its
// node. Messages between hosts are then as few as there are nodes; those inside
// a host are cheap.
package twolevel
