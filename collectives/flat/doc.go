// SPDX-License-Identifier: Apache-2.0

// Package flat holds the algorithms in which all ranks of one group are alike,
// one or two in a file: what it costs stands above each.
package flat
