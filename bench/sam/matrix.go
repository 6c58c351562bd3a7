// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gompi/bench/report"
)

// Matrix is the runs of a file: each variant so many times. Repetitions are the outer loop,
// so that what disturbs the machine disturbs all variants.
type Matrix struct {
	File        *File
	Repetitions int
	// Path is the file of results, one JSON line a run, which runs are added to; what is
	// there already is not run again. "": there is none.
	Path string
	// Start runs one, as a job, and returns its result.
	Start func(ctx context.Context, v *Variant, repetition int) (report.Result, error)
	// Emit is called with each new result.
	Emit func(report.Result) error
	// Log is where failures are told of, and with Progress what is run and how much time is
	// left.
	Log      io.Writer
	Progress bool
}

// run is one cell of a matrix.
type run struct {
	v          *Variant
	repetition int
}

// Run runs what is not there yet. A run that fails is told of, and the others go on; then
// the error counts them. Errors of the file of results, of Emit and of ctx end it.
func (m *Matrix) Run(ctx context.Context) error {
	results, there, err := m.open()
	if err != nil {
		return err
	}
	if results != nil {
		defer results.Close()
	}
	todo := m.todo(there)
	all := m.Repetitions * len(m.File.Variants)
	if len(todo) < all {
		m.tell("%d of %d runs are in %s already", all-len(todo), all, m.Path)
	}
	failed := 0
	began := time.Now()
	for i, r := range todo {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		what := fmt.Sprintf("%d of %d: %s, repetition %d", i+1, len(todo), r.v.Label(m.File.Axes), r.repetition)
		result, err := m.Start(ctx, r.v, r.repetition)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed++
			fmt.Fprintf(m.Log, "sam: %s: %v\n", what, err)
			continue
		}
		if err := add(results, result); err != nil {
			return err
		}
		if err := m.Emit(result); err != nil {
			return err
		}
		left := time.Since(began) / time.Duration(i+1) * time.Duration(len(todo)-i-1)
		m.tell("%s: %.3g s, about %v left", what, result.Sam.TotalMsec/1e3, left.Round(time.Second))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs have failed", failed, len(todo))
	}
	return nil
}

func (m *Matrix) tell(format string, v ...any) {
	if m.Progress {
		fmt.Fprintf(m.Log, "sam: "+format+"\n", v...)
	}
}

// id tells runs apart.
type id struct {
	key        string
	repetition int
}

// todo is what is to be run.
func (m *Matrix) todo(there map[id]bool) (list []run) {
	for rep := range m.Repetitions {
		for i := range m.File.Variants {
			if v := &m.File.Variants[i]; !there[id{v.Config.Key(), rep}] {
				list = append(list, run{v, rep})
			}
		}
	}
	return list
}

// open opens the file of results behind what it has. A last line that is not whole, as it
// was being written when the matrix was interrupted, is taken away.
func (m *Matrix) open() (*os.File, map[id]bool, error) {
	there := map[id]bool{}
	if m.Path == "" {
		return nil, there, nil
	}
	f, err := os.OpenFile(m.Path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(f)
	if err == nil {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	var rs []report.Result
	if err == nil {
		rs, err = report.Read(m.Path, bytes.NewReader(text))
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	for _, r := range rs {
		if r.Sam != nil {
			there[id{r.Sam.Key, r.Sam.Repetition}] = true
		}
	}
	return f, there, nil
}

// add writes a result as a whole line.
func add(f *os.File, r report.Result) error {
	if f == nil {
		return nil
	}
	var b bytes.Buffer
	if err := report.Write(&b, r); err != nil {
		return err
	}
	_, err := f.Write(b.Bytes())
	return err
}
