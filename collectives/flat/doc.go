// SPDX-License-Identifier: Apache-2.0

// Package flat holds the algorithms in which all ranks of one group are alike, one or
// two in a file. The comment above each gives its steps, its bytes, its scratch memory and
// its source; package verify proves these numbers.
package flat
