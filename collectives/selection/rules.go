// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/collectives"
)

// A table of rules as text has a line for each rule,
//
//	operation max-ranks max-bytes algorithm
//
// with 0 for no limit. What follows # is a comment; empty lines mean nothing.

// ParseRules reads rules written as text. Errors name the line.
func ParseRules(text string) ([]Rule, error) {
	var rules []Rule
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		r, err := parseRule(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d of the rules: %w", number, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(fields []string) (Rule, error) {
	if len(fields) != 4 {
		return Rule{}, fmt.Errorf("%d words, not OPERATION MAX-RANKS MAX-BYTES ALGORITHM", len(fields))
	}
	op, err := collectives.ParseOp(fields[0])
	if err != nil {
		return Rule{}, err
	}
	ranks, err := strconv.ParseUint(fields[1], 10, 31)
	if err != nil {
		return Rule{}, fmt.Errorf("%q is no number of ranks", fields[1])
	}
	bytes, err := strconv.ParseUint(fields[2], 10, 63)
	if err != nil {
		return Rule{}, fmt.Errorf("%q is no number of bytes", fields[2])
	}
	if _, err := ByName(op, fields[3]); err != nil {
		return Rule{}, err
	}
	return Rule{op, int(ranks), int64(bytes), fields[3]}, nil
}

// FormatRules writes rules as ParseRules reads them.
func FormatRules(rules []Rule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "%v %d %d %s\n", r.Op, r.MaxRanks, r.MaxBytes, r.Name)
	}
	return b.String()
}

// ParseTable makes a table of rules written as text, for example measured ones,
// before the built-in rules, which decide what they leave out.
func ParseTable(text string) (*Table, error) {
	rules, err := ParseRules(text)
	if err != nil {
		return nil, err
	}
	return NewTable(append(rules, DefaultRules()...))
}
