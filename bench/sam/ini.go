// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"fmt"
	"strconv"
	"strings"
)

// parseINI makes the tree of an INI file: that of the JSON form. A file with the sections
// general, stageN and resizeN is of the old form: one phase of as many iterations as the
// groups have, one granularity, other numbers of stages. A newer one has phaseN and
// phaseN.stageM. Sections beyond the numbers in general are passed over.
func parseINI(text []byte) (tree any, old bool, err error) {
	sections := map[string]map[string]any{}
	section := ""
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, ";")
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			name, rest, ok := strings.Cut(line[1:], "]")
			if !ok || strings.TrimSpace(rest) != "" {
				return nil, false, fmt.Errorf("line %d: %q is no section", n, line)
			}
			section = strings.TrimSpace(name)
			if sections[section] != nil {
				return nil, false, fmt.Errorf("line %d: another section %q", n, section)
			}
			sections[section] = map[string]any{}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" {
			return nil, false, fmt.Errorf("line %d: %q is neither a section nor KEY=VALUE in one", n, line)
		}
		sections[section][strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	general := sections["general"]
	if general == nil {
		return nil, false, fmt.Errorf("there is no section [general]")
	}
	for key, value := range map[string]string{"Datasize": "1", "Rigid": "0", "Capture_Method": "0", "Total_Resizes": "0"} {
		if _, there := general[key]; !there {
			general[key] = value
		}
	}
	_, old = general["Total_Stages"]
	// counted are the sections with a name and the numbers from 0 on.
	counted := func(in map[string]any, key, name string, more int) ([]any, error) {
		count, err := strconv.Atoi(fmt.Sprint(in[key]))
		if err != nil || count < 0 || count > mostList {
			return nil, fmt.Errorf("%s=%v is no count", key, in[key])
		}
		list := make([]any, 0, count+more)
		for i := range count + more {
			s := sections[name+strconv.Itoa(i)]
			if s == nil {
				return nil, fmt.Errorf("there is no section [%s%d]", name, i)
			}
			list = append(list, s)
		}
		return list, nil
	}
	var phases []any
	if old {
		phases, err = oldPhase(general, counted)
	} else {
		phases, err = counted(general, "Total_Phases", "phase", 0)
		for i := 0; i < len(phases) && err == nil; i++ {
			p := phases[i].(map[string]any)
			p["stages"], err = counted(p, "Total_Stages", fmt.Sprintf("phase%d.stage", i), 0)
		}
	}
	if err != nil {
		return nil, false, err
	}
	groups, err := counted(general, "Total_Resizes", "resize", 1)
	if err != nil {
		return nil, false, err
	}
	return map[string]any{"general": general, "phases": phases, "groups": groups}, old, nil
}

// oldTypes are the numbers of stages of today by those of the old form.
var oldTypes = map[string]string{"0": "0", "1": "1", "2": "2", "3": "5", "4": "6", "5": "7", "6": "8"}

// oldPhase is the one phase of the old form; how many iterations it has is known when the
// alternatives are chosen.
func oldPhase(general map[string]any, counted func(in map[string]any, key, name string, more int) ([]any, error)) ([]any, error) {
	list, err := counted(general, "Total_Stages", "stage", 0)
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		s := v.(map[string]any)
		if _, there := s["Granularity"]; !there && general["Granularity"] != nil {
			s["Granularity"] = general["Granularity"]
		}
		kinds := strings.Split(fmt.Sprint(s["Stage_Type"]), otherMark)
		for k, kind := range kinds {
			now, ok := oldTypes[strings.TrimSpace(kind)]
			if !ok {
				return nil, fmt.Errorf("[stage%d]: there is no Stage_Type %s in this form", i, kind)
			}
			kinds[k] = now
		}
		s["Stage_Type"] = strings.Join(kinds, otherMark)
	}
	stages := general["Total_Stages"]
	delete(general, "Total_Stages")
	delete(general, "Granularity")
	general["Total_Phases"] = "1"
	return []any{map[string]any{"Total_Iters": "1", "Total_Stages": stages, "stages": list}}, nil
}
