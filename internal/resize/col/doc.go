// SPDX-License-Identifier: Apache-2.0

// Package col is what a job tells about its scaling, so that who shares out the slots
// can weigh it against others: a cooperative optimization language that is data, not a
// program. It is typed, versioned and bounded: a model of its speed, the sizes that it
// may have, its priority, and what a change costs it. See
// docs/design/029-resource-managers.md; schema.json is the same for other languages.
package col
