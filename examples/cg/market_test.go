// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const tiny = `%%MatrixMarket matrix coordinate real symmetric
% a comment
3 3 5

1 1 4
2 1 -1
2 2 4.5
% another
3 2 -1e0
3 3 4
`

func parseText(name, text string) (*csr, error) {
	l, err := newLines(name, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return parseMatrix(l)
}

func sameCSR(a, b *csr) bool {
	return slices.Equal(a.ptr, b.ptr) && slices.Equal(a.col, b.col) && slices.Equal(a.val, b.val)
}

func TestReadForms(t *testing.T) {
	want := &csr{[]int{0, 2, 5, 7}, []int32{0, 1, 0, 1, 2, 1, 2}, []float64{4, -1, -1, 4.5, -1, -1, 4}}
	general := "%%MatrixMarket matrix coordinate real general\n3 3 7\n" +
		"3 3 4\n1 1 4\n2 1 -1\n1 2 -1\n2 2 4.5\n2 3 -1\n3 2 -1\n" // in no order
	for name, text := range map[string]string{
		"symmetric":      tiny,
		"windows":        strings.ReplaceAll(tiny, "\n", "\r\n"),
		"upper case":     strings.Replace(tiny, "matrix coordinate real symmetric", "MATRIX Coordinate REAL Symmetric", 1),
		"no end of line": strings.TrimSuffix(tiny, "\n"),
		"tabs":           strings.Replace(tiny, "2 1 -1", " \t2\t1  -1 \t", 1),
		"general":        general,
		"Fortran":        strings.NewReplacer("-1\n", "-1.0D+00\n", " 4\n", " 0.4d1\n").Replace(tiny),
		"gzip":           string(zip(t, tiny)),
		"two members":    string(zip(t, tiny[:60])) + string(zip(t, tiny[60:])),
		"zstd":           string(zstandard(t, tiny)),
	} {
		a, err := parseText("t.mtx", text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !sameCSR(a, want) {
			t.Errorf("%s: got %v", name, a)
		}
	}
	a, err := parseText("t.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n2 2 3\n1 1 2\n2 1 -1\n2 2 2\n")
	if err != nil || !sameCSR(a, &csr{[]int{0, 2, 4}, []int32{0, 1, 0, 1}, []float64{2, -1, -1, 2}}) {
		t.Errorf("integer: %v %v", a, err)
	}
}

func TestReadReal(t *testing.T) {
	a, err := readMatrix("testdata/bcsstk16.mtx.gz")
	if err != nil {
		t.Fatal(err)
	}
	if a.rows() != 4884 || len(a.val) != 2*147631-4884 {
		t.Errorf("%d rows, %d nonzeros", a.rows(), len(a.val))
	}
	b := a.rowSums()
	if norm := math.Sqrt(dot(b, b)); math.Abs(norm/1.0495799970468939e10-1) > 1e-14 {
		t.Errorf("|A 1| = %.17g", norm)
	}
}

// Every damaged file gives an error that begins with file and line.
func TestReadDamaged(t *testing.T) {
	const head = "%%MatrixMarket matrix coordinate real symmetric\n"
	const general = "%%MatrixMarket matrix coordinate real general\n"
	packed, squeezed := zip(t, tiny), zstandard(t, tiny)
	tarred := archive(t, "tiny/tiny.mtx", tiny)
	flipped := slices.Clone(packed)
	flipped[len(flipped)-8] ^= 1 // the checksum
	for name, c := range map[string]struct {
		text string
		line int
		says string
	}{
		"empty":             {"", 1, "the file is empty"},
		"blank":             {"\n" + tiny, 1, "no Matrix Market header"},
		"no header":         {"3 3 5\n1 1 4\n", 1, `"3 3 5" is no Matrix Market header`},
		"short header":      {"%%MatrixMarket matrix coordinate real\n", 1, "no Matrix Market header"},
		"array":             {"%%MatrixMarket matrix array real general\n", 1, `the format is "array"`},
		"pattern":           {"%%MatrixMarket matrix coordinate pattern symmetric\n", 1, `"pattern"`},
		"complex":           {"%%MatrixMarket matrix coordinate complex symmetric\n", 1, `"complex"`},
		"skew":              {"%%MatrixMarket matrix coordinate real skew-symmetric\n", 1, `"skew-symmetric"`},
		"no size":           {head + "% x\n", 3, "before the line with the size"},
		"short size":        {head + "3 3\n", 2, `"3 3" is no size`},
		"size of words":     {head + "3 three 5\n", 2, `"three" is no number of columns`},
		"negative rows":     {head + "-3 -3 5\n", 2, `"-3" is no number of rows`},
		"negative entries":  {head + "3 3 -5\n", 2, `"-5" is no number of entries`},
		"huge":              {head + "99999999999999999999 3 5\n", 2, "is no number of rows"},
		"absurd":            {head + "4000000000 4000000000 5000000000\n", 2, "at most 2147483647"},
		"many promised":     {head + "2000000000 2000000000 2000000001\n1 1 1\n", 4, "ends after 1 of 2000000001"},
		"not square":        {head + "3 4 5\n", 2, "must be square"},
		"nothing":           {head + "0 0 0\n", 2, "is empty"},
		"singular":          {head + "3 3 2\n", 2, "singular"},
		"no room":           {head + "3 3 7\n", 2, "room for 6"},
		"no room, general":  {general + "3 3 10\n", 2, "room for 9"},
		"row 0":             {head + "1 1 1\n0 1 1\n", 3, "row 0 is outside 1..1"},
		"row too large":     {head + "1 1 1\n\n2 1 1\n", 4, "row 2 is outside 1..1"},
		"column too large":  {head + "1 1 1\n1 2 1\n", 3, "column 2 is outside 1..1"},
		"column negative":   {head + "1 1 1\n1 -1 1\n", 3, "column -1 is outside"},
		"row fraction":      {head + "1 1 1\n1.0 1 1\n", 3, `row "1.0" is no index`},
		"two fields":        {head + "1 1 1\n1 1\n", 3, `"1 1" is no entry`},
		"four fields":       {head + "1 1 1\n1 1 1 1\n", 3, "is no entry"},
		"NaN":               {head + "1 1 1\n1 1 nan\n", 3, `"nan" is no finite value`},
		"infinite":          {head + "1 1 1\n1 1 -Inf\n", 3, `"-Inf" is no finite value`},
		"overflow":          {head + "1 1 1\n1 1 1e999\n", 3, `"1e999" is no finite value`},
		"word":              {head + "1 1 1\n1 1 x\n", 3, `"x" is no value`},
		"fraction":          {"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", 3, `"1.5" is no integer`},
		"too few":           {head + "3 3 5\n1 1 1\n2 2 1\n", 5, "ends after 2 of 5"},
		"too many":          {tiny + "\n3 1 7\n", 12, `"3 1 7" comes after the last of 5`},
		"above":             {head + "2 2 3\n1 1 1\n1 2 1\n2 2 1\n", 4, "above the diagonal"},
		"twice":             {head + "2 2 3\n1 1 1\n% x\n\n2 2 1\n2 2 1\n", 7, "(2, 2) appears twice, before in line 6"},
		"twice, apart":      {head + "2 2 3\n2 2 1\n%\n1 1 1\n%\n2 2 1\n", 7, "before in line 3"},
		"negative diagonal": {head + "2 2 2\n1 1 1\n2 2 -1\n", 4, "-1 on the diagonal"},
		"no diagonal":       {head + "2 2 2\n1 1 1\n2 1 1\n", 5, "row 2 has no entry on the diagonal"},
		"asymmetric":        {general + "2 2 3\n1 1 1\n2 1 3\n2 2 1\n", 4, "(2, 1) is 3, but (1, 2) is 0"},
		"long line":         {head + "%" + strings.Repeat("x", maxLine) + "\n", 2, "longer than"},
		"binary":            {"\x00\x01\x02\x03\n", 1, `"\x00\x01\x02\x03" is no Matrix Market header`},
		"gzip head":         {string(packed[:5]), 1, "cut off"},
		"gzip cut":          {string(packed[:len(packed)-20]), 0, "cut off"},
		"gzip no trailer":   {string(packed[:len(packed)-8]), 11, "cut off"},
		"gzip checksum":     {string(flipped), 11, "checksum"},
		"zstd cut":          {string(squeezed[:len(squeezed)-5]), 1, "cut off"},
		"zstd window":       {"\x28\xb5\x2f\xfd\x00\xb8", 1, "window"},
		"gzip, garbage":     {string(packed) + "garbage behind it\n", 0, "bytes that are not compressed"},
		"gzip, zeros":       {string(packed) + strings.Repeat("\x00", 512), 0, "bytes that are not compressed"},
		"gzip, text":        {string(packed) + tiny, 0, "bytes that are not compressed"},
		"zstd, garbage":     {string(squeezed) + "garbage behind it\n", 0, "bytes that are not compressed"},
		"tar":               {tarred, 1, "is a tar archive: unpack it first (tar -xf)"},
		"tar.gz":            {string(zip(t, tarred)), 1, "is a tar archive"},
		"tar.zst":           {string(zstandard(t, tarred)), 1, "is a tar archive"},
		"bz2":               {"BZh91AY&SY\x01\x02", 1, "is compressed by bzip2: unpack it first (bunzip2)"},
		"xz":                {"\xfd7zXZ\x00\x00\x04", 1, "is compressed by xz: unpack it first (unxz)"},
		"zip":               {"PK\x03\x04\x14\x00", 1, "is a zip archive: unpack it first (unzip)"},
		"Fortran's word":    {head + "1 1 1\n1 1 D\n", 3, `"D" is no value`},
		"Fortran's NaN":     {head + "1 1 1\n1 1 1.0D+999\n", 3, `"1.0D+999" is no finite value`},
	} {
		a, err := parseText("t.mtx", c.text)
		if err == nil {
			t.Errorf("%s: no error, got %v", name, a)
			continue
		}
		where := "t.mtx:"
		if c.line > 0 {
			where = fmt.Sprintf("t.mtx:%d: ", c.line)
		}
		if s := err.Error(); !strings.HasPrefix(s, where) || !strings.Contains(s, c.says) || strings.Contains(s, "\n") {
			t.Errorf("%s: %q, want %q and %q", name, s, where, c.says)
		}
	}
}

func TestReadVector(t *testing.T) {
	const head = "%%MatrixMarket matrix array real general\n"
	for text, want := range map[string]string{
		head + "%\n2 1\n1.5\n\n-2\n": "",
		head + "3 1\n1\n2\n3\n":      "v.mtx:2: 3 x 1 values, the matrix needs 2 x 1",
		head + "2 2\n1\n2\n3\n4\n":   "v.mtx:2: 2 x 2 values, the matrix needs 2 x 1",
		head + "2 1\n1\n":            "v.mtx:4: the file ends after 1 of 2 values",
		head + "2 1\n1\n2\n3\n":      `v.mtx:5: "3" comes after the last of 2 values`,
		head + "2 1\n1\nInf\n":       `v.mtx:4: "Inf" is no finite value`,
		head + "2 1\n1 2\n":          `v.mtx:3: "1 2" is no value`,
		tiny:                         `v.mtx:1: the format is "coordinate", it must be array`,
		"%%MatrixMarket matrix array real symmetric\n": "v.mtx:1: a vector is general, not symmetric",
	} {
		l, err := newLines("v.mtx", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		v, err := parseVector(l, 2)
		if err == nil && (want != "" || !slices.Equal(v, []float64{1.5, -2})) || err != nil && err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", text, v, err, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	var p places
	at := []int{3, 4, 5, 9, 10, 12, 13, 14}
	for i, line := range at {
		p.add(i, line)
	}
	for i, line := range at {
		if got := p.line(i); got != line {
			t.Errorf("entry %d is in line %d, got %d", i, line, got)
		}
	}
	if len(p.runs) != 3 {
		t.Errorf("%d runs, want 3", len(p.runs))
	}
}

// Whatever a file holds, the reader gives an error of one line that names the
// file, or a matrix that keeps its promises.
func FuzzReadMatrix(f *testing.F) {
	f.Add([]byte(tiny))
	f.Add([]byte(strings.Replace(tiny, "real symmetric", "integer general", 1)))
	f.Add([]byte("%%MatrixMarket matrix coordinate real general\n2 2 4\n2 1 1\n1 1 2\n1 2 1\n2 2 2\n"))
	f.Add(zip(f, tiny))
	f.Add(zstandard(f, tiny))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseText("f.mtx", string(data))
		if err != nil {
			if s := err.Error(); !strings.HasPrefix(s, "f.mtx:") || strings.Contains(s, "\n") {
				t.Errorf("error %q", s)
			}
			return
		}
		n := a.rows()
		if n < 1 || a.ptr[0] != 0 || a.ptr[n] != len(a.col) || len(a.col) != len(a.val) {
			t.Fatalf("%d rows, %v, %d columns, %d values", n, a.ptr, len(a.col), len(a.val))
		}
		for i := range n {
			r := a.row(i)
			for k, c := range r.col {
				if c < 0 || int(c) >= n || k > 0 && c <= r.col[k-1] || !finite(r.val[k]) {
					t.Fatalf("row %d: %v", i, r)
				}
			}
			if !(r.at(int32(i)) > 0) {
				t.Fatalf("row %d has diagonal %g", i, r.at(int32(i)))
			}
		}
		if i, j, found := a.asymmetric(); found {
			t.Fatalf("(%d, %d) has no mirror image", i, j)
		}
	})
}

func FuzzReadVector(f *testing.F) {
	f.Add([]byte("%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := newLines("f.mtx", bytes.NewReader(data))
		if err != nil {
			return
		}
		defer l.Close()
		v, err := parseVector(l, 3)
		if err == nil && (len(v) != 3 || !finite(v[0]) || !finite(v[1]) || !finite(v[2])) {
			t.Errorf("%v", v)
		}
	})
}

func archive(t testing.TB, name, text string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	return string(pack(t, &b, w, text))
}

func zip(t testing.TB, text string) []byte {
	var b bytes.Buffer
	return pack(t, &b, gzip.NewWriter(&b), text)
}

func zstandard(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	return pack(t, &b, w, text)
}

func pack(t testing.TB, b *bytes.Buffer, w io.WriteCloser, text string) []byte {
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
