// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/version"
	"gompi/internal/base/wire"
)

// The following never changes, so that programs of any two versions can tell each other why they do
// not work together:
//
//   - the head of a frame;
//   - the numbers of KindHello, KindTool, KindGreet and KindBye;
//   - the body of the first three begins with a text, the sender's version of gompi (since
//     protocol 9); a text has four bytes of length;
//   - the body of KindBye is a text.
//
// A Bye has the protocol number of the frame that it answers.

// MaxVersion is the longest version of gompi, in bytes.
const MaxVersion = 128

// Build is the program at one end of a connection.
type Build struct {
	What     string // "this program", "gompirun"
	Version  string // of gompi; empty: unknown
	Protocol int
}

// OwnBuild returns the Build of this program.
func OwnBuild(what string) Build { return Build{what, version.Gompi(), wire.Protocol} }

func (b Build) String() string {
	v := b.Version
	if v == "" {
		v = "(unknown build)"
	}
	return fmt.Sprintf("%s has gompi %s, protocol %d", b.What, v, b.Protocol)
}

// Mismatch returns the error of two builds that do not work together. It says which one to rebuild.
func Mismatch(a, b Build) error {
	if a.Protocol > b.Protocol {
		return Mismatch(b, a)
	}
	return fmt.Errorf("%v, but %v: rebuild %s with the newer gompi", a, b, a.What)
}

// VersionError is the error of a frame of another protocol.
type VersionError struct {
	Protocol int
	Kind     Kind
	Bytes    int // of its body
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("frame has version %d, not %d", e.Protocol, wire.Protocol)
}

// Opens reports whether the frame looks like the first one of a connection.
func (e *VersionError) Opens() bool {
	switch e.Kind {
	case KindHello, KindTool, KindGreet:
		return e.Bytes <= e.Kind.BodyLimit()
	}
	return false
}

// Sender returns the build that has sent this first frame, with that body.
func (e *VersionError) Sender(body []byte) Build {
	b := Build{What: "the program", Protocol: e.Protocol}
	switch e.Kind {
	case KindTool:
		b.What = "gompictl"
	case KindGreet:
		b.What = "the other job's gompirun"
	}
	if e.Protocol > lastSilent && len(body) >= 4 {
		if n := binary.LittleEndian.Uint32(body); n <= MaxVersion && int(n) <= len(body)-4 {
			b.Version = string(body[4:][:n])
		}
	}
	return b
}

// lastSilent is the last protocol whose first frames had no version.
const lastSilent = 8

// ByeTo returns the last frame to a peer of that protocol.
func ByeTo(protocol int, text string) []byte {
	b := ShortFrame(0, 0, &Text{Kind: KindBye, Text: text})
	b[offVersion] = byte(protocol)
	return b
}

// ExplainVersion explains an error of reading the answer to a first frame. own names this program.
// If the other end, which is gompirun, has another protocol and says no more, it is a Mismatch.
func ExplainVersion(err error, own string) error {
	if e, ok := err.(*VersionError); ok && e.Kind == KindBye {
		return Mismatch(OwnBuild(own), Build{What: "gompirun", Protocol: e.Protocol})
	}
	return err
}
