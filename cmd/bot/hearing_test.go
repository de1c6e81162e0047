package main

import (
	"testing"
	"time"

	"github.com/countersign/countersign/said"
)

func TestWhoHearsOwners(t *testing.T) {
	endpoint := map[string]string{"OPENAI_MODEL": "some-model", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
	with := func(vars map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range vars {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for name, c := range map[string]struct {
		vars map[string]string
		want string // the beginning of the fingerprint; empty: nobody hears
		ok   bool
	}{
		"by default": {nil, said.BuiltIn{}.Fingerprint(), true},
		"builtin":    {with(endpoint, "COUNTERSIGN_SAID", "builtin"), said.BuiltIn{}.Fingerprint(), true},
		"off":        {with(nil, "COUNTERSIGN_SAID", "off"), "", true},
		"openai":     {with(endpoint, "COUNTERSIGN_SAID", "openai"), "openai", true},
		"no model":   {with(nil, "COUNTERSIGN_SAID", "openai"), "", false},
		"another":    {with(nil, "COUNTERSIGN_SAID", "gpt"), "", false},
		"no zone":    {with(nil, "COUNTERSIGN_TIME_ZONE", "Moon/Base"), "", false},
	} {
		cfg, _, err := load(c.vars, "", nil)
		if err == nil {
			h, bad := newHearing(cfg)
			if err = bad; err == nil && (h != nil) != (c.want != "") {
				t.Errorf("%s: %+v", name, h)
			}
			if h != nil && c.want != "" && (len(h.Extractor.Fingerprint()) < len(c.want) || h.Extractor.Fingerprint()[:len(c.want)] != c.want) {
				t.Errorf("%s: %s", name, h.Extractor.Fingerprint())
			}
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg, _, err := load(map[string]string{"COUNTERSIGN_TIME_ZONE": "Europe/Berlin"}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHearing(cfg)
	if err != nil || h.Zone.String() != "Europe/Berlin" || h.Within != 0 || h.Now().Before(time.Unix(0, 0)) {
		t.Errorf("%+v %v", h, err)
	}
}
