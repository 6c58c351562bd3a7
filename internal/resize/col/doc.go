// SPDX-License-Identifier: Apache-2.0

// Package col is the cooperative optimization language: what a job says about its scaling, so
// that a resource manager can weigh it against other jobs. A COL is data and not a program. It
// is typed, versioned and bounded. It holds a Model of the job's speed, the allowed sizes, the
// priority, and the cost of a change. See docs/design/029-resource-managers.md. schema.json
// describes the same for other languages.
package col
