// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/internal/base/version"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// The bytes by which programs of any two versions understand each other are the same for
// ever.
func TestOpeningStays(t *testing.T) {
	p := fmt.Sprintf("%02x", wire.Protocol)
	for want, m := range map[string]protocol.Message{
		"16000000" + p + "01000000000000" + "02000000" + hex.EncodeToString([]byte("v1")) + strings.Repeat("07", 16): &protocol.Hello{
			Version: "v1", Token: [16]byte{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
		"06000000" + p + "02000000000000" + "02000000" + hex.EncodeToString([]byte("v1")):  &protocol.Tool{Version: "v1"},
		"07000000" + p + "64000000000000" + "03000000" + hex.EncodeToString([]byte("bye")): &protocol.Text{Kind: protocol.KindBye, Text: "bye"},
	} {
		if got := hex.EncodeToString(protocol.ShortFrame(0, 0, m)); got != want {
			t.Errorf("%T is %s, not %s", m, got, want)
		}
	}
	greet := protocol.ShortFrame(0, 0, &protocol.Greet{Version: "v1"})
	if greet[5] != 192 || string(greet[protocol.FrameHead+4:][:2]) != "v1" {
		t.Errorf("Greet is %x", greet)
	}
	if b := protocol.ByeTo(200, "x"); b[4] != 200 {
		t.Errorf("a last frame for protocol 200 has version %d", b[4])
	}
}

// A first frame of another protocol says who has sent it, whatever comes behind that.
func TestSenderOfAnother(t *testing.T) {
	said := "\x03\x00\x00\x00v77 and what protocol 99 has there"
	for _, c := range []struct {
		protocol int
		kind     protocol.Kind
		body     string
		want     string
	}{
		{99, protocol.KindHello, said, "the program has gompi v77, protocol 99"},
		{99, protocol.KindTool, said, "gompictl has gompi v77, protocol 99"},
		{99, protocol.KindGreet, said, "the other job's gompirun has gompi v77, protocol 99"},
		{7, protocol.KindHello, "0123456789abcdef", "the program has gompi (unknown build), protocol 7"},
		{99, protocol.KindHello, "\xff\xff\xff\xff", "the program has gompi (unknown build), protocol 99"},
		{99, protocol.KindHello, "", "the program has gompi (unknown build), protocol 99"},
		{99, protocol.KindHello, "\x04\x00\x00\x00v77", "the program has gompi (unknown build), protocol 99"},
	} {
		frame := protocol.ShortFrame(0, 0, &protocol.Tool{})[:protocol.FrameHead]
		frame[0], frame[4], frame[5] = byte(len(c.body)), byte(c.protocol), byte(c.kind)
		_, _, err := protocol.ParseHead(frame)
		var e *protocol.VersionError
		if !errors.As(err, &e) || !e.Opens() {
			t.Fatalf("%v", err)
		}
		from := e.Sender([]byte(c.body))
		if from.String() != c.want {
			t.Errorf("%s, not %s", from, c.want)
		}
		text := protocol.Mismatch(from, protocol.OwnBuild("gompirun")).Error()
		own := fmt.Sprintf("gompirun has gompi %s, protocol %d", version.Gompi(), wire.Protocol)
		old := from.What
		if c.protocol > wire.Protocol {
			old = "gompirun"
		}
		if !strings.Contains(text, c.want) || !strings.Contains(text, own) || !strings.HasSuffix(text, ": rebuild "+old+" with the newer gompi") || strings.Contains(text, "\n") {
			t.Errorf("%s", text)
		}
	}
	garbage := []byte("\xff\xff\xff\x00\x63\x01\x00\x00\x00\x00\x00\x00")
	if _, _, err := protocol.ParseHead(garbage); err.(*protocol.VersionError).Opens() {
		t.Error("a body of 16 MiB opens a connection")
	}
}
