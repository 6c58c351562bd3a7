// SPDX-License-Identifier: Apache-2.0

// Package launch is the folder of the launcher's inner part, and what its packages share:
// the calls of the supervisor to the spawner of a host (Host) and the events that come
// back (Event), options, names of processes, exit statuses.
//
// In reading order:
//
//	spawner     starts, watches and reaps the processes of one host, forwards their output
//	supervisor  decides what the ends of processes mean, and when the job ends
//	far         carries calls and events between the supervisor and a spawner on another host
//
// Where to change what: another way to start processes on a host is in spawner/fork.go; a
// line that gompirun prints about an end is in supervisor; a new call goes to Host, to
// spawner and to both ends in far.
package launch
