// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const streamMiB = 100

// 100 MB through gompirun come out as they went in, on each stream, also when
// another rank speaks on the other one.
func TestOutputIsByteExact(t *testing.T) {
	h := sha256.New()
	noise(h, streamMiB<<20)
	want := fmt.Sprintf("%x", h.Sum(nil))
	cmd := command(t, "-np", "1", "RANK", "noise", fmt.Sprint(streamMiB), ":", "-np", "1", "RANK", "noise", "1", "stderr")
	out, errs := sha256.New(), sha256.New()
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", out.Sum(nil)); got != want {
		t.Errorf("stdout: hash %s, want %s", got, want)
	}
	h.Reset()
	noise(h, 1<<20)
	if !bytes.Equal(errs.Sum(nil), h.Sum(nil)) {
		t.Error("stderr differs")
	}
}

// Standard input reaches rank 0 as it is, from a pipe and from a file.
func TestInputToRank0(t *testing.T) {
	h := sha256.New()
	noise(h, streamMiB<<20)
	want := fmt.Sprintf("%d %x <nil>\n", streamMiB<<20, h.Sum(nil))

	cmd := command(t, "-np", "2", "RANK", "sum")
	r, w := io.Pipe()
	cmd.Stdin = r
	go func() { noise(w, streamMiB<<20); w.Close() }()
	empty := fmt.Sprintf("0 %x <nil>\n", sha256.Sum256(nil))
	if got := finish(t, cmd); got.status != 0 || got.stdout != want+empty && got.stdout != empty+want {
		t.Errorf("%+v, want %q and %q", got, want, empty)
	}

	name := filepath.Join(t.TempDir(), "input")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	noise(f, 1<<20)
	f.Seek(0, io.SeekStart)
	h.Reset()
	noise(h, 1<<20)
	cmd = command(t, "--stdin", "1", "-np", "2", "RANK", "sum")
	cmd.Stdin = f
	want = fmt.Sprintf("%d %x <nil>\n", 1<<20, h.Sum(nil))
	if got := finish(t, cmd); got.status != 0 || got.stdout != want+empty && got.stdout != empty+want {
		t.Errorf("%+v, want %q and %q", got, want, empty)
	}
}

func TestInputToAllAndNone(t *testing.T) {
	text := strings.Repeat("abc\n", 1<<16)
	cmd := command(t, "--stdin", "all", "-np", "3", "RANK", "cat")
	cmd.Stdin = strings.NewReader(text)
	if r := finish(t, cmd); r.status != 0 || len(r.stdout) != 3*len(text) || strings.ReplaceAll(r.stdout, "abc\n", "") != "" {
		t.Errorf("all: status %d, %d bytes, stderr %q", r.status, len(r.stdout), r.stderr)
	}
	cmd = command(t, "--stdin", "none", "-np", "3", "RANK", "cat")
	cmd.Stdin = strings.NewReader(text)
	if r := finish(t, cmd); r.status != 0 || r.stdout != "" {
		t.Errorf("none: status %d, %d bytes", r.status, len(r.stdout))
	}
}

// A rank that does not read its input keeps nobody: the job ends when the
// ranks do.
func TestUnreadInput(t *testing.T) {
	cmd := command(t, "--stdin", "all", "-np", "2", "RANK", "nothing")
	cmd.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	if r := finish(t, cmd); r.status != 0 || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

// `gompirun ... | head -1` ends quietly, as if the ranks had got SIGPIPE.
func TestClosedOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "-np", "2", "RANK", "noise", "50")
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd.Wait()
	if s := cmd.ProcessState.ExitCode(); s != 141 || errs.Len() > 0 {
		t.Errorf("status %d, stderr %q, want 141 and nothing", s, errs.String())
	}
}

// What a stranger who inherited the output would write does not keep
// gompirun.
func TestOrphanDoesNotKeepTheJob(t *testing.T) {
	r := gompirun(t, "-np", "1", "sh", "-c", "sleep 1000 & setsid sleep 3 & echo done")
	if r.status != 0 || r.stdout != "done\n" || r.took.Seconds() > 2.5 {
		t.Errorf("%+v", r)
	}
}
