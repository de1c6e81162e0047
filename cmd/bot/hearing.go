package main

import (
	"time"
	_ "time/tzdata" // the people's zone, where the machine has no list of them

	"github.com/countersign/countersign/classifier/openai"
	"github.com/countersign/countersign/reply"
	"github.com/countersign/countersign/said"
	saidopenai "github.com/countersign/countersign/said/openai"
)

// Who takes permissions from what owners type.
const (
	saidBuiltIn = "builtin"
	saidOpenAI  = "openai"
	saidOff     = "off"
)

// newHearing makes what takes permissions from owners' words; nil: nothing does.
func newHearing(c config) (*reply.Hearing, error) {
	var x said.Extractor
	switch c.Said {
	case saidOff:
		return nil, nil
	case saidBuiltIn, "": // the demo loads no settings
		x = said.BuiltIn{}
	case saidOpenAI:
		cfg, ok := openai.FromEnv(c.OpenAI)
		if !ok {
			return nil, usage("COUNTERSIGN_SAID=openai needs OPENAI_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY.")
		}
		asker, err := saidopenai.New(cfg, reply.HearWithin)
		if err != nil {
			return nil, usage("OPENAI_ settings do not hold: %v", err)
		}
		x = asker
	}
	return &reply.Hearing{Extractor: x, Now: time.Now, Zone: c.TimeZone}, nil
}
