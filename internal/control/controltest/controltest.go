// SPDX-License-Identifier: Apache-2.0

// Package controltest has what the tests of the control plane's packages share: a sample of each
// message (samples.go), which is also a seed of the fuzz tests, and helpers that wait, look for
// leaks, and take resources away (helpers.go, limit_linux.go).
package controltest

import (
	"bytes"
	"reflect"

	"gompi/internal/control/protocol"
)

// Blank returns an empty message of the same type and kind.
func Blank(m protocol.Message) protocol.Message {
	if n := protocol.KindOf(m).New(); reflect.TypeOf(n) == reflect.TypeOf(m) {
		return n
	}
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(protocol.Message) // a body of a reply
}

// OverWire returns what arrives of a message on another machine.
func OverWire(m protocol.Message) protocol.Message {
	n := Blank(m)
	if err := protocol.Decode(n, bytes.Clone(protocol.Encode(m))); err != nil {
		panic(err)
	}
	return n
}
