// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/internal/control/protocol"
)

// View is a live view: samples and keys come in, lines go out. One goroutine uses it.
type View struct {
	Title string
	// Describe describes a change in one line.
	Describe func(r *protocol.OpReport) string
	// Hosts sums up the processes of a host. Key is the key for sorting rows (Keys);
	// Reverse reverses the order.
	Hosts   bool
	Key     string
	Reverse bool

	history History
	sample  Sample
	rows    []Row // of processes, unsorted

	first int // index of the first row on the page
	page  int // number of rows on the page
}

// Add takes a sample; samples must be in order of time.
func (v *View) Add(s Sample) {
	v.rows, v.sample = v.history.Rows(&s), s
}

// several reports whether there is more than one host.
func (v *View) several() bool {
	return slices.ContainsFunc(v.rows, func(r Row) bool { return r.Host != v.rows[0].Host })
}

// shown returns the rows in the form and order of the view, and their columns.
func (v *View) shown() ([]Row, []column) {
	rows, cols := v.rows, columns(v.Hosts, v.several(), setNames(v.sample.Sets))
	if v.Hosts {
		rows = Hosts(rows)
	}
	return sorted(rows, cols, v.key(), v.Reverse), cols
}

// Act handles a key; quit means that the user ends the view. Keys are letters, or Up,
// Down, PgUp, PgDn, Home, End.
func (v *View) Act(key string) (quit bool) {
	switch key {
	case "q", "Q", "Esc", "Ctrl-C":
		return true
	case "h", "H":
		v.Hosts = !v.Hosts
		v.first = 0
	case "r", "R":
		v.Reverse = !v.Reverse
	case "s", ">", "S", "<":
		keys := Keys(v.Hosts, v.several())
		i := slices.Index(keys, v.key())
		if key == "s" || key == ">" {
			i++
		} else {
			i += len(keys) - 1
		}
		v.Key = keys[i%len(keys)]
	case "Up", "k":
		v.first--
	case "Down", "j":
		v.first++
	case "PgUp":
		v.first -= v.page
	case "PgDn", " ":
		v.first += v.page
	case "Home", "g":
		v.first = 0
	case "End", "G":
		v.first = len(v.rows)
	}
	return false
}

// Style is the appearance of a line.
type Style uint8

const (
	Plain  Style = iota
	Strong       // a title
	Bar          // the heading of the table
	New          // has arrived a moment ago
	Moving       // is under way
	Faint        // is over
)

// Line is one line of the page.
type Line struct {
	Text  string
	Style Style
}

// mostOps is the number of changes shown, lateAfter the time after which an answer counts
// as late.
const (
	mostOps   = 3
	lateAfter = 3 * time.Second
)

// Lines returns the page at a moment: at most height lines of at most width letters. A low
// terminal shows only the table.
func (v *View) Lines(width, height int, now time.Time) []Line {
	if width < 1 || height < 1 {
		return nil
	}
	rows, cols := v.shown()
	cols = fitted(cols, width)
	lines := v.head(now)
	if most := height - 6; len(lines) > most {
		lines = lines[:max(0, min(2, most))]
	}
	lines = append(lines, Line{heading(cols, v.key(), v.Reverse), Bar})
	v.page = max(1, height-len(lines)-1)
	v.first = min(max(0, v.first), max(0, len(rows)-v.page))
	last := min(v.first+v.page, len(rows))
	for i := v.first; i < last; i++ {
		r := &rows[i]
		l := Line{Text: line(cols, func(c *column) string { return c.text(r) })}
		switch {
		case r.Gone:
			l.Style = Faint
		case r.Fresh:
			l.Style = New
		}
		lines = append(lines, l)
	}
	for len(lines) < height-1 {
		lines = append(lines, Line{})
	}
	keys := "q quit  s sort  r reverse  h hosts"
	if v.Hosts {
		keys = "q quit  s sort  r reverse  h processes"
	}
	if len(rows) > v.page {
		keys = fmt.Sprintf("%d-%d of %d  ", v.first+1, last, len(rows)) + keys
	}
	lines = append(lines, Line{keys, Faint})
	lines = lines[:min(len(lines), height)]
	for i := range lines {
		lines[i].Text = clip(lines[i].Text, width)
	}
	return lines
}

// key returns the present key for sorting.
func (v *View) key() string {
	if keys := Keys(v.Hosts, v.several()); !slices.Contains(keys, v.Key) {
		return keys[0]
	}
	return v.Key
}

// head returns the lines above the table: the job, all processes together, sets and
// changes.
func (v *View) head(now time.Time) []Line {
	if v.sample.When.IsZero() {
		return []Line{{v.Title, Strong}, {"no answer yet", Plain}}
	}
	lines := []Line{{v.Title + "  " + v.sample.When.Format(time.TimeOnly), Strong}, {v.total(), Plain}}
	if late := now.Sub(v.sample.When); late > lateAfter {
		lines[1] = Line{fmt.Sprintf("gompirun has not answered for %s", long(late)), Moving}
	}
	lines = append(lines, Line{v.sets(), Plain})
	return append(lines, v.changes()...)
}

func (v *View) total() string {
	t := Total(v.rows)
	text := counted(t.Ranks, "process", "processes")
	if v.several() {
		text += " on " + counted(len(Hosts(v.rows)), "host", "hosts")
	}
	spares := 0
	for i := range v.sample.Procs {
		if v.sample.Procs[i].State == protocol.Spare {
			spares++
		}
	}
	if spares > 0 {
		text += fmt.Sprintf(" and %s", counted(spares, "spare", "spares"))
	}
	if !t.Known {
		return text
	}
	return fmt.Sprintf("%s: CPU %.0f%%, %s of memory, %s messages/s of %s/s, %s collectives/s",
		text, 100*t.CPU, bytes(float64(t.Memory)), amount(t.Sent), bytes(t.SentBytes), amount(t.Collectives))
}

// bytes formats an amount of bytes.
func bytes(x float64) string {
	text := amount(x)
	if last := text[len(text)-1]; last > '9' {
		return text[:len(text)-1] + " " + string(last) + "B"
	}
	return text + " B"
}

func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", several)
}

// sets returns the process sets, the main one first.
func (v *View) sets() string {
	names := setNames(v.sample.Sets)
	var list []string
	for i := range v.sample.Sets {
		s := &v.sample.Sets[i]
		if names[s.Set.Number] == "" {
			continue
		}
		text := fmt.Sprint(s.Living)
		if s.Living < s.Size {
			text += fmt.Sprintf(" of %d", s.Size)
		}
		if s.Watched > 0 {
			text += ", watched"
		}
		if s.Pending {
			text += ", not decided"
		}
		text = fmt.Sprintf("%s (%s)", names[s.Set.Number], text)
		if s.Main {
			list = slices.Insert(list, 0, text)
		} else {
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		return "no sets"
	}
	return "sets: " + strings.Join(list, ", ")
}

// changes returns the changes under way, and the latest others.
func (v *View) changes() (lines []Line) {
	ops := v.sample.Ops
	for _, over := range []bool{false, true} {
		for i := len(ops) - 1; i >= 0 && len(lines) < mostOps; i-- {
			if o := &ops[i]; o.Op.State.Over() == over {
				style := Moving
				if over {
					style = Plain
				}
				lines = append(lines, Line{printable(v.Describe(o)), style})
			}
		}
	}
	return lines
}

// Table returns the whole table of one sample, for output that is not updated.
func (v *View) Table() []string {
	rows, cols := v.shown()
	var lines []string
	for _, l := range v.head(v.sample.When) {
		lines = append(lines, l.Text)
	}
	lines = append(lines, heading(cols, "none", false))
	for i := range rows {
		lines = append(lines, line(cols, func(c *column) string { return c.text(&rows[i]) }))
	}
	return lines
}
