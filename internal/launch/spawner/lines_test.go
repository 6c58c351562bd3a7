// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// say feeds text as a pump does.
func (l *lines) say(s *stream, text string, all bool) string {
	return string(l.feed(s, append(append([]byte(nil), s.held...), text...), all))
}

func TestLinesKeepsLinesWhole(t *testing.T) {
	var l lines
	a, b := &stream{}, &stream{}
	for i, step := range []struct {
		s    *stream
		text string
		all  bool
		want string
	}{
		{a, "one\ntw", false, "one\n"},
		{b, "x\n", false, "x\n"},
		{a, "o\n", false, "two\n"},
		{a, "prompt> ", false, ""},
		{a, "", true, "prompt> "},
		{a, "yes\n", false, "yes\n"},
		{b, "last", true, "last"},
	} {
		if !l.mayWrite(step.s) {
			t.Fatalf("step %d: the output belongs to somebody else", i)
		}
		if got := l.say(step.s, step.text, step.all); got != step.want {
			t.Fatalf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if l.mayWrite(a) {
		t.Error("a may write into b's unfinished line")
	}
	if got := l.release(); len(got) != 0 || !l.mayWrite(a) {
		t.Errorf("release wrote %q", got)
	}
}

func TestLinesHugeLineComesInPieces(t *testing.T) {
	var l lines
	a, b := &stream{}, &stream{}
	huge := strings.Repeat("x", maxPartial)
	if got := l.say(a, huge, false); got != huge {
		t.Fatalf("%d bytes came out", len(got))
	}
	if l.mayWrite(b) {
		t.Error("b may write into a's line")
	}
	if got := l.say(a, "end\n", false); got != "end\n" || !l.mayWrite(b) {
		t.Errorf("%q", got)
	}
}

func TestLinesTags(t *testing.T) {
	var l lines
	a, b := &stream{tag: "[0] "}, &stream{tag: "[1] "}
	got := l.say(a, "one\n\ntwo\nask", false) + l.say(a, "", true) + string(l.release()) +
		l.say(b, "b\n", false) + l.say(a, " me\n", false)
	want := "[0] one\n[0] \n[0] two\n[0] ask\n[1] b\n[0]  me\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever the pieces: each stream's bytes come out as they went in, and a
// line is interrupted only after release.
func TestLinesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lines
		streams := []*stream{{}, {}, {}}
		var in, out [3]bytes.Buffer
		var all bytes.Buffer
		emit := func(i int, b []byte) {
			out[i].Write(b)
			for _, c := range b {
				if c == '\n' {
					all.WriteByte('\n')
				} else {
					fmt.Fprint(&all, i)
				}
			}
		}
		released := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "stream")
			text := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n")), 0, 8).Draw(t, "text")
			if !l.mayWrite(streams[i]) {
				if rapid.Bool().Draw(t, "release") {
					l.release()
					released = true
				}
				continue
			}
			in[i].Write(text)
			flush := rapid.IntRange(0, 5).Draw(t, "flush") == 0
			emit(i, l.feed(streams[i], append(bytes.Clone(streams[i].held), text...), flush))
		}
		for i, s := range streams {
			emit(i, l.feed(s, bytes.Clone(s.held), true))
			if !bytes.Equal(in[i].Bytes(), out[i].Bytes()) {
				t.Fatalf("stream %d: %q became %q", i, in[i].Bytes(), out[i].Bytes())
			}
		}
		if released {
			return
		}
		text := all.String()
		for line := range strings.Lines(text[:strings.LastIndexByte(text, '\n')+1]) {
			if strings.Trim(line, line[:1]+"\n") != "" {
				t.Fatalf("a line of several streams: %q", line)
			}
		}
	})
}
