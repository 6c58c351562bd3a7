// SPDX-License-Identifier: Apache-2.0

// Package examples holds programs that use gompi, one a directory; README.md lists them.
// Its tests run each of them with several numbers of ranks, and check that the programs in
// the documentation compile.
package examples
