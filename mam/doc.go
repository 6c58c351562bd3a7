// SPDX-License-Identifier: Apache-2.0

// Package mam makes programs malleable.
package mam
