// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gompi/bench/report"
)

// Plots are drawn by gompiplot: the plot library sets up fonts at each start of a program
// that links it, and gompibench is started for each rank.

// writeReport implements `gompibench report`: it becomes `gompiplot page` with the same
// arguments, and returns only on error.
func writeReport(args []string) error {
	path, err := findPlotter()
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, slices.Concat([]string{"gompiplot", "page"}, args), os.Environ()); err != nil {
		return fmt.Errorf("cannot start %s: %w", path, err)
	}
	return nil
}

// writePlot draws a figure into a file, and prints its name unless quiet is set.
func writePlot(f *report.Figure, file string, quiet bool, stdout io.Writer) error {
	drawn, err := svg(f)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, drawn, 0o666); err != nil {
		return err
	}
	if !quiet {
		_, err = fmt.Fprintln(stdout, "plot:", filepath.Clean(file))
	}
	return err
}

// svg lets gompiplot draw a figure.
func svg(f *report.Figure) ([]byte, error) {
	path, err := findPlotter()
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Title, err)
	}
	var says strings.Builder
	c := exec.Command(path, "figure")
	c.Stdin, c.Stderr = bytes.NewReader(in), &says
	drawn, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, errors.New(strings.TrimSpace(says.String()))))
	}
	return drawn, nil
}

func findPlotter() (string, error) {
	path, err := find("gompiplot")
	if err != nil {
		return "", fmt.Errorf("%w; make build, or go build gompi/cmd/gompiplot, makes it", err)
	}
	return path, nil
}
