// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/internal/control"
	"gompi/internal/version"
	"gompi/internal/wire"
)

// The bytes by which programs of any two versions understand each other are the same for
// ever.
func TestOpeningStays(t *testing.T) {
	p := fmt.Sprintf("%02x", wire.Protocol)
	for want, m := range map[string]control.Message{
		"16000000" + p + "01000000000000" + "02000000" + hex.EncodeToString([]byte("v1")) + strings.Repeat("07", 16): &control.Hello{
			Version: "v1", Token: [16]byte{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
		"06000000" + p + "02000000000000" + "02000000" + hex.EncodeToString([]byte("v1")):  &control.Tool{Version: "v1"},
		"07000000" + p + "64000000000000" + "03000000" + hex.EncodeToString([]byte("bye")): &control.Text{Kind: control.KindBye, Text: "bye"},
	} {
		if got := hex.EncodeToString(control.ShortFrame(0, 0, m)); got != want {
			t.Errorf("%T is %s, not %s", m, got, want)
		}
	}
	greet := control.ShortFrame(0, 0, &control.Greet{Version: "v1"})
	if greet[5] != 192 || string(greet[control.FrameHead+4:][:2]) != "v1" {
		t.Errorf("Greet is %x", greet)
	}
	if b := control.ByeTo(200, "x"); b[4] != 200 {
		t.Errorf("a last frame for protocol 200 has version %d", b[4])
	}
}

// A first frame of another protocol says who has sent it, whatever comes behind that.
func TestSenderOfAnother(t *testing.T) {
	said := "\x03\x00\x00\x00v77 and what protocol 99 has there"
	for _, c := range []struct {
		protocol int
		kind     control.Kind
		body     string
		want     string
	}{
		{99, control.KindHello, said, "the program has gompi v77, protocol 99"},
		{99, control.KindTool, said, "gompictl has gompi v77, protocol 99"},
		{99, control.KindGreet, said, "the other job's gompirun has gompi v77, protocol 99"},
		{7, control.KindHello, "0123456789abcdef", "the program has gompi (unknown build), protocol 7"},
		{99, control.KindHello, "\xff\xff\xff\xff", "the program has gompi (unknown build), protocol 99"},
		{99, control.KindHello, "", "the program has gompi (unknown build), protocol 99"},
		{99, control.KindHello, "\x04\x00\x00\x00v77", "the program has gompi (unknown build), protocol 99"},
	} {
		frame := control.ShortFrame(0, 0, &control.Tool{})[:control.FrameHead]
		frame[0], frame[4], frame[5] = byte(len(c.body)), byte(c.protocol), byte(c.kind)
		_, _, err := control.ParseHead(frame)
		var e *control.VersionError
		if !errors.As(err, &e) || !e.Opens() {
			t.Fatalf("%v", err)
		}
		from := e.Sender([]byte(c.body))
		if from.String() != c.want {
			t.Errorf("%s, not %s", from, c.want)
		}
		text := control.Mismatch(from, control.OwnBuild("gompirun")).Error()
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
	if _, _, err := control.ParseHead(garbage); err.(*control.VersionError).Opens() {
		t.Error("a body of 16 MiB opens a connection")
	}
}
