// SPDX-License-Identifier: Apache-2.0

// Command gompiplot draws results: gompibench and examples start it, so that no rank of a
// job links the plot library.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"gompi/bench/plot"
	"gompi/bench/report"
	"gompi/internal/base/version"
)

const usage = `usage: gompiplot page [flags] FILE...    an HTML page with plots, from what ` + "`gompibench NAME --json`" + ` wrote
       gompiplot figure [flags] [FILE]   one figure as SVG

FILE - is standard input, which is also what figure reads if there is no FILE. A figure is
{"title": "", "x": {"label": "", "linear": false, "binary": false, "bytes": false}, "y": {the same},
"series": [{"name": "", "x": [0], "y": [0]}]}: an axis is logarithmic unless it is linear, its
numbers are powers of ten or (binary) of two, and are written as they are or (bytes) as 512, 4K, 64M.
With "names": ["", ...] series are bars, one a name, beside each other or ("stacked": true) on each other.

flags:
`

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "gompiplot:", err)
	if errors.As(err, new(usageError)) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is a mistake on the command line: exit status 2.
type usageError struct{ error }

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	f := pflag.NewFlagSet("gompiplot", pflag.ContinueOnError)
	f.Usage = func() {}
	out := f.StringP("output", "o", "", "file to write (default: standard output)")
	asked := f.BoolP("version", "V", false, "print the version")
	title := f.String("title", "gompi benchmarks", "title of the page")
	if err := f.Parse(args); errors.Is(err, pflag.ErrHelp) {
		_, err := fmt.Fprint(stdout, usage, f.FlagUsages())
		return err
	} else if err != nil {
		return usageError{err}
	}
	if *asked {
		_, err := io.WriteString(stdout, version.Line("gompiplot"))
		return err
	}
	var drawn []byte
	var err error
	switch f.Arg(0) {
	case "page":
		drawn, err = page(f.Args()[1:], *title, stdin)
	case "figure":
		drawn, err = figure(f.Args()[1:], stdin)
	default:
		err = usageError{errors.New("page or figure? gompiplot --help says more")}
	}
	if err != nil {
		return err
	}
	if *out == "" {
		_, err = stdout.Write(drawn)
		return err
	}
	return os.WriteFile(*out, drawn, 0o666)
}

func page(files []string, title string, stdin io.Reader) ([]byte, error) {
	if len(files) == 0 {
		return nil, usageError{errors.New("page: no file; give those that `gompibench NAME --json` wrote, or - for standard input")}
	}
	var all []report.Result
	for _, name := range files {
		err := reading(name, stdin, func(name string, r io.Reader) error {
			rs, err := report.Read(name, r)
			all = append(all, rs...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	err := plot.HTML(&b, title, all)
	return b.Bytes(), err
}

func figure(files []string, stdin io.Reader) (svg []byte, err error) {
	switch len(files) {
	case 0:
		files = []string{"-"}
	case 1:
	default:
		return nil, usageError{fmt.Errorf("figure: %d files, one is drawn", len(files))}
	}
	err = reading(files[0], stdin, func(name string, r io.Reader) error {
		var f report.Figure
		if err := json.NewDecoder(r).Decode(&f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		svg, err = plot.SVG(&f)
		return err
	})
	return svg, err
}

// reading calls read with the file of a name, and with a name for errors.
func reading(name string, stdin io.Reader, read func(name string, r io.Reader) error) error {
	if name == "-" {
		return read("standard input", stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(name, f)
}
