// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gompi/mpi"
)

// The keys of the info of PSetOp that are for a resource manager. The published
// interface has expressions of Python here, which its manager evaluates. gompi runs no code
// of a request: its keys have names and numbers.
const (
	// COLText is a COL in its JSON form. The keys below, and ProcsMin, ProcsMax and
	// ProcsPref, take precedence over it.
	COLText = "col"
	// COLPriority is COL.Priority.
	COLPriority = "priority"
	// COLModelKind is the kind of a COLModel: "amdahl", ...
	COLModelKind = "model"
	// COLParams are the numbers of the model by the names of its JSON form, and delta,
	// factor, mapping and power_of_two of a COL: "serial:0.2:float,factor:2:int", with
	// the types int, float, string and bool.
	COLParams = "model_params"
	// COLMeasured is a point of the model: "p:4:int,iteration_time:0.25:float".
	COLMeasured = "monitoring_data"

	colGenerator = "output_space_generator"
)

// ofCOL are the parameters that belong to the COL, not to its model.
var ofCOL = []string{"delta", "factor", "mapping", "power_of_two"}

// colOf returns the encoded COL that an info describes; nil: none.
func colOf(info *mpi.Info) ([]byte, error) {
	col, model := map[string]any{}, map[string]any{}
	if text, ok := info.Lookup(COLText); ok {
		c, err := ParseCOL([]byte(text))
		if err == nil {
			if col, err = fields(c); err == nil && c.Model != nil {
				model, err = fields(c.Model)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", COLText, err)
		}
	}
	if text, ok := info.Lookup(colGenerator); ok {
		return nil, fmt.Errorf("%s is %.40q: gompi runs no code; %s says which sizes there may be", colGenerator, text, COLText)
	}
	if text, ok := info.Lookup(COLPriority); ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%s is %.40q, not a number", COLPriority, text)
		}
		col["priority"] = n
	}
	if text, ok := info.Lookup(COLModelKind); ok {
		model["kind"] = strings.ToLower(strings.TrimSuffix(text, "()"))
	}
	params, err := typed(COLParams, info.Get(COLParams))
	if err != nil {
		return nil, err
	}
	for k, v := range params {
		if slices.Contains(ofCOL, k) {
			col[k] = v
		} else {
			model[k] = v
		}
	}
	measured, err := typed(COLMeasured, info.Get(COLMeasured))
	if err != nil {
		return nil, err
	}
	if len(measured) > 0 {
		points, _ := model["points"].([]any)
		model["points"] = append(points, map[string]any{"p": measured["p"], "seconds": measured["iteration_time"]})
	}
	if len(model) > 0 {
		col["model"] = model
	}
	if len(col) == 0 {
		return nil, nil
	}
	for key, name := range map[string]string{ProcsMin: "min", ProcsMax: "max", ProcsPref: "pref"} {
		if text, ok := info.Lookup(key); ok {
			col[name], _ = strconv.Atoi(strings.TrimSpace(text)) // requestOf checks it
		}
	}
	col["version"] = 1
	text, err := json.Marshal(col)
	if err == nil {
		_, err = ParseCOL(text)
	}
	return text, err
}

// fields returns the fields of the JSON form of a value.
func fields(v any) (m map[string]any, err error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	return m, err
}

// typed parses parameters of the form name:value:type,...
func typed(key, text string) (map[string]any, error) {
	m := map[string]any{}
	if text == "" {
		return m, nil
	}
	for _, part := range strings.Split(text, ",") {
		name, rest, ok := strings.Cut(part, ":")
		at := strings.LastIndexByte(rest, ':')
		if !ok || at < 0 || name == "" {
			return nil, fmt.Errorf("%s has %.40q, not name:value:type", key, part)
		}
		v, err := valueOf(rest[:at], rest[at+1:])
		if err != nil {
			return nil, fmt.Errorf("%s has %.40q: %w", key, part, err)
		}
		m[strings.TrimSpace(name)] = v
	}
	return m, nil
}

func valueOf(text, kind string) (any, error) {
	switch kind {
	case "int":
		return strconv.ParseInt(text, 10, 64)
	case "float":
		x, err := strconv.ParseFloat(text, 64)
		if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			err = fmt.Errorf("%v is not a number", x)
		}
		return x, err
	case "string":
		return text, nil
	case "bool":
		switch text {
		case "True", "true":
			return true, nil
		case "False", "false":
			return false, nil
		}
		return nil, fmt.Errorf("%.40q is neither True nor False", text)
	}
	return nil, fmt.Errorf("the type %.40q is not int, float, string or bool", kind)
}
