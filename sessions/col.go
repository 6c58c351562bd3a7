// SPDX-License-Identifier: Apache-2.0

package sessions

import "gompi/internal/resize/col"

// COL is what a program tells a resource manager about its scaling: a model of its
// speed, the sizes that it may have, its priority, and what a change costs it. Encode
// gives the bytes for Request.COL and Operation.Update. See
// docs/design/029-resource-managers.md.
type COL = col.COL

// COLModel is how fast a job is with how many processes; its Kind is one of "amdahl",
// "inverse", "linear", "constant", "table", "expression" and "fitted".
type COLModel = col.Model

// COLPoint is how long an iteration took with so many processes.
type COLPoint = col.Point

// COLFit finds the law of Amdahl that fits the times of a program best, by least squares:
// Add takes one, with the number of processes that it was measured with, Model gives the
// law once there are times of two numbers. It keeps sums only; the zero value has none.
type COLFit = col.Fit

// COLExpr is an expression of p, or of p before and q after a change: see ParseCOLExpr.
type COLExpr = col.Expr

// ParseCOL reads the JSON form of a COL, as it is in internal/resize/col/schema.json.
func ParseCOL(text []byte) (*COL, error) { return col.Decode(text) }

// ParseCOLExpr reads an expression such as "0.15 + 2.5/min(p,q)": numbers, p, q,
// + - * / ^, parentheses, min, max, log2, sqrt, ceil, floor and abs, of 512 bytes at most.
func ParseCOLExpr(text string) (*COLExpr, error) { return col.ParseExpr(text) }
