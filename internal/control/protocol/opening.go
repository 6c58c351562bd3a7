// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/version"
	"gompi/internal/base/wire"
)

// What never changes, so that programs of any two versions can tell each other why they do
// not work together: the head of a frame, the numbers of KindHello, KindTool, KindGreet and
// KindBye, that the body of the first three begins with a string (four bytes of length), the
// sender's version of gompi (since protocol 9), and that the body of KindBye is a string. A
// Bye has the protocol number of the frame that it answers.

// MaxVersion is the longest version of gompi, in bytes.
const MaxVersion = 128

// Build is what one end of a connection is.
type Build struct {
	What     string // "this program", "gompirun"
	Version  string // of gompi; empty: unknown
	Protocol int
}

// OwnBuild is that of this program.
func OwnBuild(what string) Build { return Build{what, version.Gompi(), wire.Protocol} }

func (b Build) String() string {
	v := b.Version
	if v == "" {
		v = "(unknown build)"
	}
	return fmt.Sprintf("%s has gompi %s, protocol %d", b.What, v, b.Protocol)
}

// Mismatch says which two builds do not work together, and which one is to be built anew.
func Mismatch(a, b Build) error {
	if a.Protocol > b.Protocol {
		return Mismatch(b, a)
	}
	return fmt.Errorf("%v, but %v: rebuild %s with the newer gompi", a, b, a.What)
}

// VersionError is a frame of another protocol number.
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

// Sender is who has sent a first frame of this head, with that body.
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

// lastSilent is the last protocol whose first frames did not say a version.
const lastSilent = 8

// ByeTo is the last frame to a peer of that protocol number.
func ByeTo(protocol int, text string) []byte {
	b := ShortFrame(0, 0, &Text{Kind: KindBye, Text: text})
	b[offVersion] = byte(protocol)
	return b
}

// Answered explains an error of reading the answer to a first frame: what it says if the
// other end, gompirun, is of another protocol and said nothing of itself.
func Answered(err error, own string) error {
	if e, ok := err.(*VersionError); ok && e.Kind == KindBye {
		return Mismatch(OwnBuild(own), Build{What: "gompirun", Protocol: e.Protocol})
	}
	return err
}
