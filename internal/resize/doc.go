// SPDX-License-Identifier: Apache-2.0

// Package resize is the folder of the pure functions behind changes of size:
// which elements move, how long that takes, and whether a change is worth it.
// They know no process and no message. The package itself is empty.
//
// In reading order:
//
//	layout  the elements that each rank has before and after, and what moves between them
//	cost    the time of a redistribution by each method, from a model of the machine
//	col     what a job says of its scaling, for the manager that shares out slots
//
// Where to change what: a new distribution of elements goes to layout; the
// estimate for a new redistribution method goes to cost, so that mam can choose
// it; a new statement of the cooperative optimization language goes to col.
package resize
