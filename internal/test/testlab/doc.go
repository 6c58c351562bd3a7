// SPDX-License-Identifier: Apache-2.0

// Package testlab holds what the tests of the whole library share and what does not depend on
// the library: random message-passing programs, a sequential oracle that predicts their
// results, a search for smaller programs that fail, a search for what a job leaves behind, and
// distributions of times.
//
// A [Program] is data. [Generate] makes one that cannot deadlock. Its results, as far as
// [Check] looks at them, do not depend on the order in which messages travel. The runner of a
// program on real ranks passes the results to [Check]. [Shrink] finds a smaller program that
// fails in the same way.
package testlab
