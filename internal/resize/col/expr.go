// SPDX-License-Identifier: Apache-2.0

package col

import (
	"encoding/json"
	"math"
	"strconv"
)

// Bounds on an expression. They also bound its evaluation, because an expression has no loops.
const (
	MaxExpr  = 512 // bytes
	maxDepth = 32  // of parentheses, and of the evaluation stack
)

// Expr is a small expression: numbers, p, q, + - * / ^, parentheses, and min(a, b),
// max(a, b), log2(a), sqrt(a), ceil(a), floor(a), abs(a). As JSON it is a string, or a
// number.
type Expr struct {
	text string
	code []instr
	two  bool // it contains q
}

// instr is an instruction of a stack machine.
type instr struct {
	do byte // 'n' for a number, 'p', 'q', an operator, or the letter of a function
	n  float64
}

// functions are the functions with their instruction and number of arguments.
var functions = map[string]struct {
	do   byte
	args int
}{
	"min":   {'<', 2},
	"max":   {'>', 2},
	"log2":  {'l', 1},
	"sqrt":  {'s', 1},
	"ceil":  {'c', 1},
	"floor": {'f', 1},
	"abs":   {'a', 1},
}

// ParseExpr parses an expression.
func ParseExpr(text string) (*Expr, error) {
	if len(text) > MaxExpr {
		return nil, invalid("an expression of %d bytes, at most %d allowed", len(text), MaxExpr)
	}
	p := parser{Expr: Expr{text: text}}
	p.sum(0)
	if p.skip(); p.err == nil && p.at < len(text) {
		p.fail("unexpected %q", text[p.at:min(len(text), p.at+10)])
	}
	if p.err != nil {
		return nil, p.err
	}
	return &p.Expr, nil
}

// Number returns the expression that is always x.
func Number(x float64) *Expr {
	return &Expr{text: strconv.FormatFloat(x, 'g', -1, 64), code: []instr{{do: 'n', n: x}}}
}

// String returns the text that was parsed.
func (e *Expr) String() string { return e.text }

// MarshalJSON returns the text.
func (e *Expr) MarshalJSON() ([]byte, error) { return json.Marshal(e.text) }

// UnmarshalJSON parses a string or a number.
func (e *Expr) UnmarshalJSON(text []byte) error {
	s := string(text)
	if len(text) > 0 && text[0] == '"' {
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
	}
	x, err := ParseExpr(s)
	if err != nil {
		return err
	}
	*e = *x
	return nil
}

// Eval returns the value for p and q. It may be infinite or NaN.
func (e *Expr) Eval(p, q float64) float64 {
	var stack [maxDepth]float64
	top := -1
	for _, in := range e.code {
		switch in.do {
		case 'n', 'p', 'q':
			top++
			stack[top] = in.n
			if in.do == 'p' {
				stack[top] = p
			} else if in.do == 'q' {
				stack[top] = q
			}
			continue
		case 'm':
			stack[top] = -stack[top]
			continue
		case 'l':
			stack[top] = math.Log2(stack[top])
			continue
		case 's':
			stack[top] = math.Sqrt(stack[top])
			continue
		case 'c':
			stack[top] = math.Ceil(stack[top])
			continue
		case 'f':
			stack[top] = math.Floor(stack[top])
			continue
		case 'a':
			stack[top] = math.Abs(stack[top])
			continue
		}
		b := stack[top]
		top--
		switch a := &stack[top]; in.do {
		case '+':
			*a += b
		case '-':
			*a -= b
		case '*':
			*a *= b
		case '/':
			*a /= b
		case '^':
			*a = math.Pow(*a, b)
		case '<':
			*a = min(*a, b)
		case '>':
			*a = max(*a, b)
		}
	}
	if top != 0 {
		return math.NaN() // the zero Expr
	}
	return stack[0]
}

// parser parses an expression and emits its instructions.
type parser struct {
	Expr
	at, held int // values on the stack
	err      error
}

func (p *parser) fail(format string, a ...any) {
	if p.err == nil {
		p.err = invalid("expression %.60q, at byte %d: "+format, append([]any{p.text, p.at}, a...)...)
	}
}

func (p *parser) skip() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

// next returns the next byte that is not space, or 0 at the end or after an error.
func (p *parser) next() byte {
	if p.skip(); p.err != nil || p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) emit(in instr, values int) {
	if p.held += values; p.held > maxDepth {
		p.fail("too deep")
	}
	p.code = append(p.code, in)
}

// sum parses terms joined by + and -.
func (p *parser) sum(depth int) {
	if depth > maxDepth {
		p.fail("too deep")
		return
	}
	p.product(depth)
	for c := p.next(); c == '+' || c == '-'; c = p.next() {
		p.at++
		p.product(depth)
		p.emit(instr{do: c}, -1)
	}
}

// product parses factors joined by * and /.
func (p *parser) product(depth int) {
	p.signed(depth)
	for c := p.next(); c == '*' || c == '/'; c = p.next() {
		p.at++
		p.signed(depth)
		p.emit(instr{do: c}, -1)
	}
}

// signed parses a power with or without a minus: -p^2 is -(p^2).
func (p *parser) signed(depth int) {
	if depth > maxDepth {
		p.fail("too deep")
		return
	}
	if p.next() == '-' {
		p.at++
		p.signed(depth + 1)
		p.emit(instr{do: 'm'}, 0)
		return
	}
	p.value(depth)
	if p.next() == '^' { // right-associative: 2^3^2 is 2^9
		p.at++
		p.signed(depth + 1)
		p.emit(instr{do: '^'}, -1)
	}
}

// value parses a number, a variable, a function or parentheses.
func (p *parser) value(depth int) {
	switch c := p.next(); {
	case c == '(':
		p.at++
		p.sum(depth + 1)
		p.expect(')')
	case c >= '0' && c <= '9' || c == '.':
		p.number()
	case c >= 'a' && c <= 'z':
		p.name(depth)
	case c == 0:
		p.fail("an operand is missing")
	default:
		p.fail("unexpected %q", c)
	}
}

func (p *parser) expect(c byte) {
	if p.next() != c {
		p.fail("%q is missing", c)
		return
	}
	p.at++
}

func (p *parser) number() {
	from := p.at
	digits := func() {
		for p.at < len(p.text) && (p.text[p.at] >= '0' && p.text[p.at] <= '9' || p.text[p.at] == '.') {
			p.at++
		}
	}
	digits()
	if p.at < len(p.text) && (p.text[p.at] == 'e' || p.text[p.at] == 'E') {
		if p.at++; p.at < len(p.text) && (p.text[p.at] == '-' || p.text[p.at] == '+') {
			p.at++
		}
		digits()
	}
	x, err := strconv.ParseFloat(p.text[from:p.at], 64)
	if err != nil {
		p.fail("%.20q is not a number", p.text[from:p.at])
	}
	p.emit(instr{do: 'n', n: x}, 1)
}

func (p *parser) name(depth int) {
	from := p.at
	for p.at < len(p.text) && (p.text[p.at] >= 'a' && p.text[p.at] <= 'z' || p.text[p.at] >= '0' && p.text[p.at] <= '9') {
		p.at++
	}
	name := p.text[from:p.at]
	if name == "p" || name == "q" {
		p.two = p.two || name == "q"
		p.emit(instr{do: name[0]}, 1)
		return
	}
	f, ok := functions[name]
	if !ok {
		p.fail("unknown name %.20q", name)
		return
	}
	p.expect('(')
	for i := range f.args {
		if i > 0 {
			p.expect(',')
		}
		p.sum(depth + 1)
	}
	p.expect(')')
	p.emit(instr{do: f.do}, 1-f.args)
}
