// SPDX-License-Identifier: Apache-2.0

package match

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gompi/internal/base/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden answers of testdata/*.txt anew")

// TestScripts runs testdata/*.txt. A script is lines of the form
//
//	post NAME ARGS      post a receive
//	arrive NAME ARGS    a message arrives; kept if nothing fits
//	probe ARGS          look for a message
//	take ARGS           look for a message and remove it
//	withdraw NAME       remove a receive
//	drop ARGS           drop a context
//	list                show what waits
//
// ARGS are src=N|*, tag=N|*, ctx=N, plane=N; what is missing is 0. The answer
// stands below its line, indented. Lines that start with # are comments.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			m := machine{receives: map[string]*Posted[string]{}}
			for i, line := range strings.Split(strings.TrimSuffix(string(want), "\n"), "\n") {
				if strings.HasPrefix(line, "  ") {
					continue // an old answer
				}
				fmt.Fprintln(&got, line)
				if line == "" || line[0] == '#' {
					continue
				}
				answer, err := m.run(strings.Fields(line))
				if err != nil {
					t.Fatalf("%s:%d: %v", file, i+1, err)
				}
				fmt.Fprintf(&got, "  %s\n", answer)
			}
			if *rewrite {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(want) {
				t.Errorf("%s: answers differ (-rewrite accepts them); got:\n%s", file, &got)
			}
		})
	}
}

// machine runs the lines of a script.
type machine struct {
	table    Table[string, string]
	receives map[string]*Posted[string]
}

func (m *machine) run(f []string) (string, error) {
	name := ""
	args := f[1:]
	switch f[0] {
	case "post", "arrive", "withdraw":
		if len(args) == 0 {
			return "", errors.New("no name")
		}
		name, args = args[0], args[1:]
	}
	k, err := parseKey(args)
	if err != nil {
		return "", err
	}
	switch f[0] {
	case "post":
		p := &Posted[string]{Key: k, Val: &name}
		m.receives[name] = p
		if a := m.table.Post(p); a != nil {
			return "gets " + *a.Val, nil
		}
		return "waits", nil
	case "arrive":
		if !k.Exact() {
			return "", fmt.Errorf("a message cannot have key %v", k)
		}
		if p := m.table.Arrive(k); p != nil {
			return "goes to " + *p.Val, nil
		}
		m.table.Keep(&Arrived[string]{Key: k, Val: &name})
		return "unexpected", nil
	case "probe", "take":
		a := m.table.Peek(k)
		if a == nil {
			return "nothing", nil
		}
		if f[0] == "take" {
			m.table.Take(a)
		}
		return *a.Val, nil
	case "withdraw":
		p := m.receives[name]
		if p == nil {
			return "", fmt.Errorf("no receive %q", name)
		}
		return fmt.Sprint(m.table.Withdraw(p)), nil
	case "drop":
		var out []string
		c := k.Context()
		for _, a := range m.table.DropContext(c.Creator, c.Serial) {
			out = append(out, *a.Val)
		}
		return strings.Join(append(out, "dropped"), " "), nil
	case "list":
		out := []string{"receives:"}
		for p := range m.table.EachPosted {
			out = append(out, *p.Val)
		}
		out = append(out, "messages:")
		for a := range m.table.EachArrived {
			out = append(out, *a.Val)
		}
		return strings.Join(out, " "), nil
	}
	return "", fmt.Errorf("no command %q", f[0])
}

func parseKey(args []string) (Key, error) {
	c := testContext
	var pl wire.TrafficClass
	var source, tag int32
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		n := Any
		if value != "*" {
			var err error
			if n, err = strconv.Atoi(value); err != nil {
				return Key{}, fmt.Errorf("argument %q: %w", arg, err)
			}
		}
		switch name {
		case "src":
			source = int32(n)
		case "tag":
			tag = int32(n)
		case "ctx":
			c.Serial = uint32(n)
		case "plane":
			pl = wire.TrafficClass(n)
		default:
			return Key{}, fmt.Errorf("argument %q", arg)
		}
	}
	return NewKey(c, pl, source, tag), nil
}
