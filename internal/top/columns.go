// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"gompi/internal/control/protocol"
)

// column is a column of the table. If they do not all fit, those with the highest rank are
// left out.
type column struct {
	key   string // key by which rows are sorted; "": they cannot be sorted by it
	title string
	width int // for most of its values; wider texts are cut, or shift the others
	left  bool
	rank  int
	text  func(r *Row) string
	less  func(a, b *Row) int
}

// rate makes a column of a value that is missing if rates are not known.
func rate(key, title string, rank int, of func(r *Row) float64) column {
	return column{key: key, title: title, width: 7, rank: rank,
		text: func(r *Row) string {
			if !r.Known || r.Gone {
				return "-"
			}
			return amount(of(r))
		},
		less: func(a, b *Row) int { return cmp.Compare(of(b), of(a)) },
	}
}

// columns returns the columns for processes, or for hosts. sets abbreviates names of sets.
func columns(hosts, several bool, sets map[uint32]string) []column {
	first := column{key: "rank", title: "PROCESS", width: 10, left: true, text: func(r *Row) string { return r.Name }, less: func(a, b *Row) int { return cmp.Compare(a.order, b.order) }}
	list := []column{first}
	if hosts {
		list[0].title, list[0].width = "HOST", 16
		list = append(list, column{key: "ranks", title: "RANKS", width: 6, text: func(r *Row) string { return fmt.Sprint(r.Ranks) }, less: func(a, b *Row) int { return cmp.Compare(b.Ranks, a.Ranks) }})
	} else {
		if several {
			list = append(list, column{key: "host", title: "HOST", width: 12, left: true, rank: 4, text: func(r *Row) string { return r.Host }, less: func(a, b *Row) int { return strings.Compare(a.Host, b.Host) }})
		}
		list = append(list,
			column{title: "SETS", width: 12, left: true, rank: 7, text: func(r *Row) string { return setsOf(r, sets) }},
			column{title: "PID", width: 8, rank: 6, text: func(r *Row) string { return fmt.Sprint(r.Proc.PID) }})
	}
	return append(list,
		column{key: "cpu", title: "CPU%", width: 6, text: func(r *Row) string {
			if !r.Known || r.Gone {
				return "-"
			}
			return fmt.Sprintf("%.0f", 100*r.CPU)
		}, less: func(a, b *Row) int { return cmp.Compare(b.CPU, a.CPU) }},
		column{key: "mem", title: "MEM", width: 7, rank: 2, text: func(r *Row) string {
			if r.Gone {
				return "-"
			}
			return amount(float64(r.Memory))
		}, less: func(a, b *Row) int { return cmp.Compare(b.Memory, a.Memory) }},
		rate("sent", "SENT/s", 1, func(r *Row) float64 { return r.Sent }),
		rate("received", "RECV/s", 1, func(r *Row) float64 { return r.Received }),
		rate("out", "B/s OUT", 3, func(r *Row) float64 { return r.SentBytes }),
		rate("in", "B/s IN", 3, func(r *Row) float64 { return r.ReceivedBytes }),
		rate("coll", "COLL/s", 5, func(r *Row) float64 { return r.Collectives }),
		column{key: "wait", title: "WAITS IN", width: leastWait, left: true, text: waitText, less: func(a, b *Row) int { return cmp.Compare(b.Waited, a.Waited) }},
	)
}

// leastWait is the least room for the last column, which takes the rest of the line.
const leastWait = 18

// Keys are the keys by which rows can be sorted.
func Keys(hosts, several bool) []string {
	var keys []string
	for _, c := range columns(hosts, several, nil) {
		if c.key != "" {
			keys = append(keys, c.key)
		}
	}
	return keys
}

// sorted returns rows in the order of a key.
func sorted(rows []Row, cols []column, key string, reverse bool) []Row {
	rows = slices.Clone(rows)
	i := max(0, slices.IndexFunc(cols, func(c column) bool { return c.key == key }))
	slices.SortStableFunc(rows, func(a, b Row) int {
		n := cmp.Or(cols[i].less(&a, &b), cmp.Compare(a.order, b.order))
		if reverse {
			return -n
		}
		return n
	})
	return rows
}

// fitted returns the columns for which there is room.
func fitted(cols []column, width int) []column {
	cols = slices.Clone(cols)
	for {
		total, worst := -1, -1
		for i, c := range cols {
			total += c.width + 1
			if c.rank > 0 && (worst < 0 || c.rank >= cols[worst].rank) {
				worst = i
			}
		}
		if total <= width || worst < 0 {
			return cols
		}
		cols = slices.Delete(cols, worst, worst+1)
	}
}

// line formats one line of the columns.
func line(cols []column, text func(c *column) string) string {
	var b strings.Builder
	for i := range cols {
		c := &cols[i]
		t := text(c)
		switch {
		case i == len(cols)-1:
			b.WriteString(t)
		case c.left:
			fmt.Fprintf(&b, "%-*s ", c.width, clip(t, c.width))
		default:
			fmt.Fprintf(&b, "%*s ", c.width, clip(t, c.width))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func heading(cols []column, key string, reverse bool) string {
	return line(cols, func(c *column) string {
		switch {
		case c.key != key:
			return c.title
		case reverse:
			return c.title + "^"
		}
		return c.title + "*"
	})
}

// clip shortens a text to a number of letters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	return string(r[:n-1]) + "~"
}

func waitText(r *Row) string {
	if r.Waits == "" {
		return "-"
	}
	text := r.Waits
	if r.For != "" {
		text += ", " + r.For
	}
	if r.Waited > 0 {
		text += " " + long(r.Waited)
	}
	if r.Proc != nil && len(r.Proc.Calls) > 0 && r.Proc.State == protocol.Joined && r.Waited > 0 {
		text += " at " + r.Proc.Calls[0].Caller
	}
	return text
}

// setsOf returns the sets of a process, the main one first.
func setsOf(r *Row, names map[uint32]string) string {
	var list []string
	for _, n := range r.Proc.Sets {
		if name := names[n]; name == mainName {
			list = slices.Insert(list, 0, name)
		} else if name != "" {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

const mainName = "main"

// setNames abbreviates the names of sets for a column: a name of the program's, or a
// number. Sets of hosts have none, as hosts have a column.
func setNames(sets []protocol.SetReport) map[uint32]string {
	names := map[uint32]string{}
	for i := range sets {
		s := &sets[i]
		name := fmt.Sprint(s.Set.Number)
		if strings.HasPrefix(s.Set.Name, protocol.HostScheme) {
			name = ""
		}
		for _, other := range append([]string{s.Set.Name}, s.Names...) {
			if short, is := strings.CutPrefix(other, "app://"); is {
				name = short
			}
		}
		if s.Main {
			name = mainName
		}
		names[s.Set.Number] = printable(name)
	}
	return names
}

// printable removes characters that a terminal would obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// amount formats a number with three or four digits; k, M, G are powers of 1000.
func amount(x float64) string {
	const units = "kMGTPE"
	if x < 999.5 {
		if x > 0 && x < 9.95 && x != math.Trunc(x) {
			return fmt.Sprintf("%.1f", x)
		}
		return fmt.Sprintf("%.0f", x)
	}
	i := 0
	for x /= 1000; x >= 999.5 && i < len(units)-1; i++ {
		x /= 1000
	}
	if x < 9.95 {
		return fmt.Sprintf("%.1f%c", x, units[i])
	}
	return fmt.Sprintf("%.0f%c", x, units[i])
}

// long formats a duration.
func long(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
