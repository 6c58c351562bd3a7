// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"gompi/bench/report"
)

// writeReport is `gompibench report FILE...`; "-" is standard input.
func writeReport(args []string, stdout io.Writer) error {
	f := pflag.NewFlagSet("gompibench report", pflag.ContinueOnError)
	f.Usage = func() {}
	out := f.StringP("output", "o", "", "file to write (default: standard output)")
	title := f.String("title", "gompi benchmarks", "title of the page")
	if err := f.Parse(args); errors.Is(err, pflag.ErrHelp) {
		_, err := fmt.Fprint(stdout, "usage: gompibench report [flags] FILE...\n\nflags:\n", f.FlagUsages())
		return err
	} else if err != nil {
		return usageError{err}
	}
	if f.NArg() == 0 {
		return usageError{errors.New("report: no file; give those that `gompibench NAME --json` wrote, or - for standard input")}
	}
	var all []report.Result
	for _, name := range f.Args() {
		rs, err := readFile(name)
		if err != nil {
			return err
		}
		all = append(all, rs...)
	}
	var page bytes.Buffer
	if err := report.HTML(&page, *title, all); err != nil {
		return err
	}
	if *out == "" {
		_, err := stdout.Write(page.Bytes())
		return err
	}
	return os.WriteFile(*out, page.Bytes(), 0o666)
}

func readFile(name string) ([]report.Result, error) {
	if name == "-" {
		return report.Read("standard input", os.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return report.Read(name, f)
}
