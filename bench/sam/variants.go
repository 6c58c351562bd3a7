// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// What separates alternatives, and what stands together, in a text.
const (
	otherMark = ":"
	listMark  = ","
)

// Variant is one combination of the alternatives of a file.
type Variant struct {
	Index int // among those that are run
	// Settings are what was chosen, by the path in the file: "groups[0].Procs" is "2".
	Settings map[string]string
	Config   *Config
}

// Label names the variant: the sizes, and what else was chosen, methods and strategies by
// their names.
func (v *Variant) Label(axes []string) string {
	list := []string{v.Config.Sizes()}
	for _, path := range axes {
		key := path[strings.LastIndexByte(path, '.')+1:]
		var g Group
		var n int
		if _, err := fmt.Sscanf(path, "groups[%d].", &n); err == nil && n < len(v.Config.Groups) {
			g = v.Config.Groups[n]
		}
		switch key {
		case "Procs":
		case "Redistribution_Method":
			list = append(list, g.Method.String())
		case "Redistribution_Strategy":
			list = append(list, g.Strategy.String())
		case "Spawn_Method":
			list = append(list, g.Process.String())
		case "Spawn_Strategy":
			list = append(list, "spawn "+g.Spawn.String())
		default:
			list = append(list, key+"="+v.Settings[path])
		}
	}
	return strings.Join(list, " ")
}

// File is a configuration that was read.
type File struct {
	Axes     []string // the paths with alternatives, in order: the last one varies fastest
	Variants []Variant
	// Equal is how many combinations were left out as neighbouring groups are of one size,
	// Refused why others were.
	Equal   int
	Refused []error
}

// mostVariants bounds the combinations of a file.
const mostVariants = 100_000

// axis is a text with alternatives.
type axis struct {
	path string
	keys []any // of maps and lists, from the root on
	text []string
	// with, if not nil, is the FactorS that goes along.
	with *axis
}

// Parse reads a configuration, JSON or INI, and makes its variants: all combinations of
// texts with alternatives, FactorS of a group together with its Procs, without those in
// which neighbouring groups are of one size. With alternatives ADR is a percentage of SDR,
// which is the sum. Errors name what is wrong: all of a file without alternatives, or of
// which no variant is right; of others Refused has them.
func Parse(text []byte) (*File, error) {
	tree, old, err := parse(text)
	if err != nil {
		return nil, err
	}
	axes, err := axesOf(tree)
	if err != nil {
		return nil, err
	}
	all := 1
	f := &File{}
	for _, a := range axes {
		f.Axes = append(f.Axes, a.path)
		if all *= len(a.text); all > mostVariants {
			return nil, fmt.Errorf("more than %d combinations", mostVariants)
		}
	}
	for i := range all {
		v := Variant{Settings: make(map[string]string, len(axes))}
		for k := len(axes) - 1; k >= 0; k-- {
			a := &axes[k]
			n := i % len(a.text)
			i /= len(a.text)
			set(tree, a.keys, a.text[n])
			v.Settings[a.path] = a.text[n]
			if a.with != nil {
				set(tree, a.with.keys, a.with.text[n])
				v.Settings[a.with.path] = a.with.text[n]
			}
		}
		if err := f.add(tree, old, v); err != nil {
			return nil, err
		}
	}
	switch {
	case len(f.Variants) > 0:
		return f, nil
	case len(f.Refused) > 0:
		return nil, f.Refused[0]
	}
	return nil, fmt.Errorf("in all of %d combinations neighbouring groups are of one size", f.Equal)
}

// add takes a combination, unless it is left out.
func (f *File) add(tree any, old bool, v Variant) error {
	c, err := configOf(tree, old)
	if err == nil && len(f.Axes) > 0 {
		err = c.share()
	}
	if err == nil {
		err = c.CheckGroups()
	}
	switch {
	case err != nil && len(f.Axes) == 0:
		return err
	case err != nil:
		f.Refused = append(f.Refused, fmt.Errorf("%v: %w", v.Settings, err))
	case c.equalNeighbours():
		f.Equal++
	default:
		v.Index, v.Config = len(f.Variants), c
		f.Variants = append(f.Variants, v)
	}
	return nil
}

// share makes ADR, a percentage of SDR, bytes, which are taken away from SDR.
func (c *Config) share() error {
	if c.ADR > 100 {
		return fmt.Errorf("general.ADR: %d is no percentage, as which it counts beside alternatives", c.ADR)
	}
	part := int64(float64(c.SDR) * float64(c.ADR) / 100)
	c.SDR, c.ADR = c.SDR-part, part
	return nil
}

// parse makes a tree of a text. old: it is of the INI form that has no phases.
func parse(text []byte) (tree any, old bool, err error) {
	if at := bytes.TrimSpace(text); len(at) > 0 && (at[0] == '[' || at[0] == ';' || at[0] == '#') {
		return parseINI(text)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, false, fmt.Errorf("JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false, errors.New("JSON: something follows the configuration")
	}
	return tree, false, nil
}

// axesOf are the texts with alternatives, by path.
func axesOf(tree any) ([]axis, error) {
	var axes []axis
	var errs []error
	var walk func(v any, path string, keys []any)
	walk = func(v any, path string, keys []any) {
		switch v := v.(type) {
		case map[string]any:
			for key, x := range v {
				walk(x, at(path, key), append(slices.Clone(keys), key))
			}
		case []any:
			for i, x := range v {
				walk(x, fmt.Sprintf("%s[%d]", path, i), append(slices.Clone(keys), i))
			}
		case string:
			if !strings.Contains(v, otherMark) {
				return
			}
			a := axis{path: path, keys: keys}
			for item := range strings.SplitSeq(v, otherMark) {
				if item = strings.TrimSpace(item); item == "" {
					errs = append(errs, fmt.Errorf("%s: an empty alternative in %q", path, v))
				}
				a.text = append(a.text, item)
			}
			if strings.HasPrefix(a.last(), "Total_") {
				errs = append(errs, fmt.Errorf("%s: a count has no alternatives", path))
			}
			axes = append(axes, a)
		}
	}
	walk(tree, "", nil)
	slices.SortFunc(axes, func(a, b axis) int { return strings.Compare(a.path, b.path) })
	axes, err := pairFactors(axes)
	return axes, errors.Join(append(errs, err)...)
}

func (a *axis) last() string {
	key, _ := a.keys[len(a.keys)-1].(string)
	return key
}

// pairFactors puts FactorS of a group to its Procs, if that has alternatives.
func pairFactors(axes []axis) ([]axis, error) {
	var errs []error
	for i := range axes {
		a := &axes[i]
		base, ok := strings.CutSuffix(a.path, ".Procs")
		if !ok {
			continue
		}
		n := slices.IndexFunc(axes, func(b axis) bool { return b.path == base+".FactorS" })
		switch {
		case n < 0:
			errs = append(errs, fmt.Errorf("%s.FactorS: as many alternatives as Procs are needed", base))
		case len(axes[n].text) != len(a.text):
			errs = append(errs, fmt.Errorf("%s.FactorS: %d alternatives, and %d of Procs", base, len(axes[n].text), len(a.text)))
		default:
			with := axes[n]
			a.with = &with
		}
	}
	axes = slices.DeleteFunc(axes, func(a axis) bool {
		return slices.ContainsFunc(axes, func(b axis) bool { return b.with != nil && b.with.path == a.path })
	})
	return axes, errors.Join(errs...)
}

// set puts a text into the tree.
func set(tree any, keys []any, text string) {
	for i, key := range keys {
		last := i == len(keys)-1
		switch key := key.(type) {
		case string:
			m := tree.(map[string]any)
			if last {
				m[key] = text
			}
			tree = m[key]
		case int:
			l := tree.([]any)
			if last {
				l[key] = text
			}
			tree = l[key]
		}
	}
}
