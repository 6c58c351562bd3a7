// SPDX-License-Identifier: Apache-2.0

// Package sim runs mixes of jobs under a resource manager in virtual time: a day of
// thousands of jobs in seconds, without a process. The COLs of the jobs are taken to be
// true. See docs/design/029-resource-managers.md.
package sim
