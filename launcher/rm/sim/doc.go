// SPDX-License-Identifier: Apache-2.0

// Package sim runs mixes of jobs under a manager of resources in virtual time: a day of
// thousands of jobs in seconds, without a process. What the jobs say of themselves is
// taken to be true. See docs/design/029-resource-managers.md.
package sim
