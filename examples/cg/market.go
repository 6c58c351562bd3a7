// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxRows bounds the matrix: a column index has 32 bits.
const maxRows = math.MaxInt32

// readMatrix reads a symmetric matrix from a Matrix Market file: coordinate,
// real or integer, symmetric (the lower triangle is stored) or general. It
// allocates by what it has read, never by what the file promises. Its errors
// name the file and, where there is one, the line.
func readMatrix(name string) (*csr, error) {
	l, err := openLines(name)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return parseMatrix(l)
}

// readVector reads a vector of n values: a Matrix Market file, array, real or
// integer, general, with one column.
func readVector(name string, n int) ([]float64, error) {
	l, err := openLines(name)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return parseVector(l, n)
}

func parseMatrix(l *lines) (*csr, error) {
	kind, err := parseHeader(l, "coordinate")
	if err != nil {
		return nil, err
	}
	n, count, err := parseShape(l, kind)
	if err != nil {
		return nil, err
	}
	entries, where, err := parseEntries(l, n, count, kind)
	if err != nil {
		return nil, err
	}
	a, err := newCSR(int(n), entries, kind.symmetric)
	if d, ok := errors.AsType[doubled](err); ok {
		first := find(entries, d.row, d.col, kind.symmetric)
		second := first + 1 + find(entries[first+1:], d.row, d.col, kind.symmetric)
		return nil, l.errorAt(where.line(second), "%w, before in line %d", d, where.line(first))
	}
	for i := range a.rows() {
		if v := a.row(i).at(int32(i)); !(v > 0) {
			if k := find(entries, int32(i), int32(i), false); k >= 0 {
				return nil, l.errorAt(where.line(k), "%g on the diagonal: the matrix is not positive definite", v)
			}
			return nil, l.errorf("row %d has no entry on the diagonal: the matrix is not positive definite", i+1)
		}
	}
	if kind.symmetric {
		return a, nil
	}
	if i, j, found := a.asymmetric(); found {
		k := find(entries, int32(i), int32(j), false)
		return nil, l.errorAt(where.line(k), "the matrix is not symmetric: (%d, %d) is %g, but (%d, %d) is %g",
			i+1, j+1, a.row(i).at(int32(j)), j+1, i+1, a.row(j).at(int32(i)))
	}
	return a, nil
}

// parseShape reads the size of a matrix: its rows and the entries that follow.
func parseShape(l *lines, kind kind) (n, count int64, err error) {
	size, err := parseSize(l, "rows", "columns", "entries")
	if err != nil {
		return 0, 0, err
	}
	n, count = size[0], size[2]
	switch {
	case n != size[1]:
		return 0, 0, l.errorf("the matrix has %d rows and %d columns, it must be square", n, size[1])
	case n == 0:
		return 0, 0, l.errorf("the matrix is empty")
	case n > maxRows:
		return 0, 0, l.errorf("the matrix has %d rows, at most %d are possible", n, maxRows)
	}
	most := n * n
	if kind.symmetric {
		most = n * (n + 1) / 2
	}
	switch {
	case count < n:
		return 0, 0, l.errorf("%d entries in %d rows: some row has none, so the matrix is singular", count, n)
	case count > most:
		return 0, 0, l.errorf("%d entries, but the matrix has room for %d", count, most)
	}
	return n, count, nil
}

func parseEntries(l *lines, n, count int64, kind kind) ([]entry, *places, error) {
	var where places
	var entries []entry
	for {
		b, err := l.data()
		switch {
		case err == io.EOF && int64(len(entries)) < count:
			return nil, nil, l.errorf("the file ends after %d of %d entries", len(entries), count)
		case err == io.EOF:
			return entries, &where, nil
		case err != nil:
			return nil, nil, err
		case int64(len(entries)) == count:
			return nil, nil, l.errorf("%s comes after the last of %d entries", quote(b), count)
		}
		i, rest := field(b)
		j, rest := field(rest)
		v, rest := field(rest)
		if len(v) == 0 || len(rest) > 0 {
			return nil, nil, l.errorf("%s is no entry: row, column and value are", quote(b))
		}
		e := entry{}
		if e.row, err = parseIndex(i, n); err != nil {
			return nil, nil, l.errorf("row %w", err)
		}
		if e.col, err = parseIndex(j, n); err != nil {
			return nil, nil, l.errorf("column %w", err)
		}
		if e.val, err = parseValue(v, kind); err != nil {
			return nil, nil, l.errorf("%w", err)
		}
		if kind.symmetric && e.row < e.col {
			return nil, nil, l.errorf("entry (%d, %d) is above the diagonal: a symmetric file stores what is below", e.row+1, e.col+1)
		}
		where.add(len(entries), l.n)
		entries = append(entries, e)
	}
}

func parseVector(l *lines, n int) ([]float64, error) {
	kind, err := parseHeader(l, "array")
	if err != nil {
		return nil, err
	}
	if kind.symmetric {
		return nil, l.errorf("a vector is general, not symmetric")
	}
	size, err := parseSize(l, "rows", "columns")
	if err != nil {
		return nil, err
	}
	if size[0] != int64(n) || size[1] != 1 {
		return nil, l.errorf("%d x %d values, the matrix needs %d x 1", size[0], size[1], n)
	}
	vs := make([]float64, 0, n) // as large as the matrix that is there already
	for {
		b, err := l.data()
		switch {
		case err == io.EOF && len(vs) < n:
			return nil, l.errorf("the file ends after %d of %d values", len(vs), n)
		case err == io.EOF:
			return vs, nil
		case err != nil:
			return nil, err
		case len(vs) == n:
			return nil, l.errorf("%s comes after the last of %d values", quote(b), n)
		}
		v, err := parseValue(b, kind)
		if err != nil {
			return nil, l.errorf("%w", err)
		}
		vs = append(vs, v)
	}
}

// kind is what the header says about the entries.
type kind struct{ integer, symmetric bool }

func parseHeader(l *lines, format string) (kind, error) {
	b, err := l.next()
	if err == io.EOF {
		return kind{}, l.errorf("the file is empty")
	}
	if err != nil {
		return kind{}, err
	}
	words := strings.Fields(strings.ToLower(string(b)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return kind{}, l.errorf(`%s is no Matrix Market header: "%%%%MatrixMarket matrix %s real general" is one`, quote(b), format)
	}
	if words[2] != format {
		return kind{}, l.errorf("the format is %s, it must be %s", quote([]byte(words[2])), format)
	}
	k := kind{words[3] == "integer", words[4] == "symmetric"}
	if words[3] != "real" && !k.integer {
		return kind{}, l.errorf("the values are %s, they must be real or integer", quote([]byte(words[3])))
	}
	if words[4] != "general" && !k.symmetric {
		return kind{}, l.errorf("the matrix is %s, it must be symmetric or general", quote([]byte(words[4])))
	}
	return k, nil
}

// parseSize reads the line that says how much follows.
func parseSize(l *lines, names ...string) ([]int64, error) {
	b, err := l.data()
	if err == io.EOF {
		return nil, l.errorf("the file ends before the line with the size")
	}
	if err != nil {
		return nil, err
	}
	words := strings.Fields(string(b))
	if len(words) != len(names) {
		return nil, l.errorf("%s is no size: %s are", quote(b), strings.Join(names, ", "))
	}
	size := make([]int64, len(names))
	for i, w := range words {
		size[i], err = strconv.ParseInt(w, 10, 64)
		if err != nil || size[i] < 0 {
			return nil, l.errorf("%s is no number of %s", quote([]byte(w)), names[i])
		}
	}
	return size, nil
}

func parseIndex(b []byte, n int64) (int32, error) {
	i, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no index", quote(b))
	}
	if i < 1 || i > n {
		return 0, fmt.Errorf("%d is outside 1..%d", i, n)
	}
	return int32(i - 1), nil
}

func parseValue(b []byte, kind kind) (float64, error) {
	if kind.integer {
		i, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s is no integer", quote(b))
		}
		return float64(i), nil
	}
	v, err := strconv.ParseFloat(fortran(b), 64)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%s is no finite value", quote(b))
	case err != nil:
		return 0, fmt.Errorf("%s is no value", quote(b))
	}
	return v, nil
}

// fortran is a number with the letter of Go's exponents for that of Fortran: 1.0D+00.
func fortran(b []byte) string {
	text := string(b)
	if strings.ContainsAny(text, "xX") {
		return text // hexadecimal, where d is a digit
	}
	return strings.Map(func(r rune) rune {
		if r == 'd' || r == 'D' {
			return 'e'
		}
		return r
	}, text)
}

// find returns the index of the entry in a place, -1 if there is none.
func find(entries []entry, row, col int32, mirror bool) int {
	return slices.IndexFunc(entries, func(e entry) bool {
		return e.row == row && e.col == col || mirror && e.row == col && e.col == row
	})
}

// places knows the line of each entry. Entries stand in consecutive lines but
// for the odd comment, so only the first of each run is kept.
type places struct{ runs []place }

type place struct{ entry, line int }

func (p *places) add(entry, line int) {
	if len(p.runs) == 0 || p.line(entry) != line {
		p.runs = append(p.runs, place{entry, line})
	}
}

func (p *places) line(entry int) int {
	i, found := slices.BinarySearchFunc(p.runs, entry, func(r place, e int) int { return r.entry - e })
	if !found {
		i--
	}
	return p.runs[i].line + entry - p.runs[i].entry
}
