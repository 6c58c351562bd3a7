// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// leastPackageDoc is the least number of lines of a package comment.
const leastPackageDoc = 3

// checkDocNames: a doc comment begins with the name that it documents, after an
// article perhaps. A comment that does not was mostly left behind by a renaming.
func checkDocNames(f *file) []string {
	if f.isTest() {
		return nil
	}
	var out []string
	look := func(name string, doc *ast.CommentGroup) {
		words := strings.Fields(doc.Text())
		if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && !strings.HasPrefix(words[0], name) {
			out = append(out, f.problem(f.line(doc), "the comment of %s begins with %q", name, words[0]))
		}
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			look(d.Name.Name, d.Doc)
		case *ast.GenDecl:
			if d.Tok != token.TYPE {
				continue
			}
			for _, s := range d.Specs {
				spec := s.(*ast.TypeSpec)
				if doc := spec.Doc; doc != nil {
					look(spec.Name.Name, doc)
				} else if !d.Lparen.IsValid() {
					look(spec.Name.Name, d.Doc)
				}
			}
		}
	}
	return out
}

// phrasesOut are turns of phrase that a reader has to read twice, each with the
// advice for its place.
var phrasesOut = []struct {
	phrase *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`\b[a-z]*manyth\b`), "say the index, or the position"},
	{regexp.MustCompile(`\b(for|of|to|by|as|than|from|with|but|asks|tells) who\b`), "name the process, the caller or the reader"},
	{regexp.MustCompile(`(^|[.;:] )Who [b-z][^?]*?[.;]`), "begin with a noun: the process that, the caller that"},
	{regexp.MustCompile(`\b(is|are) none of\b`), "say what it is not"},
	{regexp.MustCompile(`\bcomes to nothing\b`), "say what happens"},
}

// unvoiced are the directories whose comments still have such phrases. The list
// may only become shorter.
var unvoiced = []string{
	"internal/base/bytepool",
	"internal/base/fault",
	"internal/base/freelist",
	"internal/base/idset",
	"internal/base/list",
	"internal/base/settings",
	"internal/base/version",
	"internal/control/agent",
	"internal/control/callreg",
	"internal/control/change",
	"internal/control/changepage",
	"internal/control/client",
	"internal/control/collmem",
	"internal/control/controltest",
	"internal/control/head",
	"internal/control/protocol",
	"internal/control/server",
	"internal/data/buffer",
	"internal/host/cachedist",
	"internal/host/cpus",
	"internal/host/cputime",
	"internal/host/dirty",
	"internal/host/mem",
	"internal/host/parallel",
	"internal/host/wait",
	"internal/resize/col",
	"internal/resize/layout",
	"transport/tuning",
}

// checkLanguage looks for phrases that are out in the comments of a file.
func checkLanguage(f *file) []string {
	if f.isTest() || slices.Contains(unvoiced, f.dir()) || f.path == "internal/test/archtest/language.go" {
		return nil
	}
	var bad []string
	for _, g := range f.syntax.Comments {
		text := strings.Join(strings.Fields(g.Text()), " ")
		for _, o := range phrasesOut {
			if found := o.phrase.FindString(text); found != "" {
				bad = append(bad, f.problem(f.line(g), "%q in a comment: %s", found, o.advice))
			}
		}
	}
	return bad
}

// fileWordsOut are adverbs and participles that were names of files: a file is named
// by its noun.
var fileWordsOut = []string{"again", "asked", "asking", "behind", "beside", "between", "called", "changed", "closing", "decided", "early", "following", "freed", "fresh", "given", "handed", "happen", "late", "past", "pending", "told", "waiting", "written"}

// checkFileNames wants files named by nouns.
func checkFileNames(f *file) []string {
	if f.isTest() || slices.Contains(unvoiced, f.dir()) {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(path.Base(f.path), ".go"), "_")
	if slices.Contains(fileWordsOut, name) {
		return []string{f.problem(1, "the file's name is no noun: name what it holds")}
	}
	return nil
}

// checkPackageDocs wants package comments that say more than the name.
func checkPackageDocs(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		if !f.isGo() || f.isTest() || f.syntax.Doc == nil || f.syntax.Name.Name == "main" || slices.Contains(unvoiced, f.dir()) {
			continue
		}
		text := f.syntax.Doc.Text()
		if want := "Package " + f.syntax.Name.Name + " "; !strings.HasPrefix(text, want) {
			bad = append(bad, f.problem(f.line(f.syntax.Doc), "the package comment does not begin with %q", want))
		}
		if n := strings.Count(text, "\n"); n < leastPackageDoc {
			bad = append(bad, f.problem(f.line(f.syntax.Doc), "the package comment of %s has %d lines, at least %d: what it does, its main types, what a reader must know", path.Base(f.dir()), n, leastPackageDoc))
		}
	}
	return bad
}
