// SPDX-License-Identifier: Apache-2.0

// Package testlab holds what the tests of the whole library share and what
// knows nothing of the library: random message-passing programs with the
// sequential oracle that predicts their results, their reduction when one
// fails, the search for what a job leaves behind, and distributions of times.
//
// A [Program] is data. [Generate] makes one that cannot deadlock and whose
// results are determined, as far as [Check] looks at them, whatever the order
// in which messages travel. Whoever runs it on real ranks gives the results to
// [Check]; [Shrink] finds a smaller program that fails in the same way.
package testlab
