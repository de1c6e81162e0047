package said

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ParseCandidates reads what a model answered: {"intents": […]} or the list
// alone, with whatever it wrote around it left aside. It never fails; an entry
// that is no candidate is dropped with a schema reason, as is the whole where
// there is nothing to read.
func ParseCandidates(answer string) ([]Candidate, []Drop) {
	entries, ok := intentsIn(answer)
	if !ok { // mutant: said.schema-json
		return nil, []Drop{{Reason: DropSchemaJSON}}
	}
	var all []Candidate
	var drops []Drop
	for _, raw := range entries {
		c, reason := parseCandidate(raw)
		if reason != "" {
			drops = append(drops, Drop{Candidate: c, Reason: reason})
			continue
		}
		all = append(all, c)
	}
	return all, drops
}

// intentsIn finds the first JSON value in the answer that holds intents.
func intentsIn(answer string) ([]jsontext.Value, bool) {
	for i, r := range answer {
		if r != '{' && r != '[' {
			continue
		}
		dec := jsontext.NewDecoder(strings.NewReader(answer[i:]))
		v, err := dec.ReadValue() // one value, no name twice, valid UTF-8
		if err != nil {
			return nil, false
		}
		v = v.Clone()
		if r == '[' {
			return elements(v)
		}
		var object map[string]jsontext.Value
		if json.Unmarshal(v, &object) != nil || object["intents"] == nil {
			return nil, false
		}
		return elements(object["intents"])
	}
	return nil, false
}

func elements(v jsontext.Value) ([]jsontext.Value, bool) {
	if v.Kind() != '[' {
		return nil, false
	}
	var list []jsontext.Value
	return list, json.Unmarshal(v, &list) == nil
}

func parseCandidate(raw jsontext.Value) (Candidate, Reason) {
	var c Candidate
	var f map[string]jsontext.Value
	if raw.Kind() != '{' || json.Unmarshal(raw, &f) != nil {
		return c, DropSchemaJSON
	}
	text := func(name string, into *string) bool {
		v := f[name]
		return isNull(v) || v.Kind() == '"' && json.Unmarshal(v, into) == nil
	}
	flag := func(name string, into *bool) bool {
		v := f[name]
		return isNull(v) || (v.Kind() == 't' || v.Kind() == 'f') && json.Unmarshal(v, into) == nil
	}
	number := func(name string, into *int) bool {
		v := f[name]
		return isNull(v) || v.Kind() == '0' && json.Unmarshal(v, into) == nil
	}
	amount := func() bool {
		v := f["amount_max"]
		switch {
		case isNull(v):
			return true
		case v.Kind() == '0':
			c.AmountMax = string(bytes.TrimSpace(v))
		case v.Kind() == '"':
			return json.Unmarshal(v, &c.AmountMax) == nil
		default:
			return false
		}
		return true
	}
	to := func() bool {
		v := f["to"]
		return isNull(v) || v.Kind() == '[' && json.Unmarshal(v, &c.To) == nil && noNulls(v)
	}
	for _, check := range []struct {
		ok     bool
		reason Reason
	}{
		{text("kind", &c.Kind), DropSchemaKind},
		{text("channel", &c.Channel), DropSchemaChannel},
		{to(), DropSchemaTo},
		{flag("standing", &c.Standing) && flag("reply_to_current", &c.ReplyToCurrent), DropSchemaFlag}, // mutant: said.schema-flag
		{amount() && number("count", &c.Count) && number("window_minutes", &c.WindowMinutes), DropSchemaNumber},
		{text("currency", &c.Currency) && text("at", &c.At) && text("until", &c.Until), DropSchemaText},
	} {
		if !check.ok {
			return c, check.reason
		}
	}
	c.Currency = strings.ToUpper(c.Currency)
	return c, ""
}

func isNull(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

func noNulls(v jsontext.Value) bool {
	list, ok := elements(v)
	for _, e := range list {
		ok = ok && e.Kind() == '"'
	}
	return ok
}
