package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestFromEnv(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want Config
		ok   bool
	}{
		"all":         {map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://x/v1", "OPENAI_MODEL": "m"}, Config{BaseURL: "http://x/v1", APIKey: "k", Model: "m"}, true},
		"hosted":      {map[string]string{"OPENAI_API_KEY": "k\n", "OPENAI_MODEL": "m"}, Config{APIKey: "k", Model: "m"}, true},
		"local":       {map[string]string{"OPENAI_BASE_URL": "http://localhost:8080/v1", "OPENAI_MODEL": "m"}, Config{BaseURL: "http://localhost:8080/v1", Model: "m"}, true},
		"no model":    {map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://x"}, Config{BaseURL: "http://x", APIKey: "k"}, false},
		"model alone": {map[string]string{"OPENAI_MODEL": "m"}, Config{Model: "m"}, false},
		"nothing":     {nil, Config{}, false},
	} {
		got, ok := FromEnv(c.env)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, c := range map[string]Config{
		"no model":            {},
		"spaces in the model": {Model: "a model"},
		"a line in the model": {Model: "m\nx"},
		"a long model":        {Model: strings.Repeat("m", 201)},
		"a file":              {Model: "m", BaseURL: "file:///etc/passwd"},
		"no scheme":           {Model: "m", BaseURL: "api.example.test/v1"},
		"another scheme":      {Model: "m", BaseURL: "ftp://api.example.test/v1"},
		"no host":             {Model: "m", BaseURL: "https:///v1"},
		"a port alone":        {Model: "m", BaseURL: "https://:443/v1"},
		"no URL":              {Model: "m", BaseURL: "http://[::1"},
		"a password":          {Model: "m", BaseURL: "https://user:" + testKey + "@api.example.test/v1"},
		"a query":             {Model: "m", BaseURL: "https://api.example.test/v1?key=" + testKey},
		"a fragment":          {Model: "m", BaseURL: "https://api.example.test/v1#" + testKey},
		"a line in the key":   {Model: "m", APIKey: testKey + "\r\nX: y"},
		"a space in the key":  {Model: "m", APIKey: testKey + " x"},
		"a mode of no kind":   {Model: "m", Mode: "guess"},
	} {
		r, err := New(c)
		if !errors.Is(err, ErrConfig) || r != nil {
			t.Errorf("%s: %v, want ErrConfig", name, err)
			continue
		}
		if strings.Contains(err.Error(), testKey) {
			t.Errorf("%s: the key stands in %q", name, err)
		}
	}
	if r, err := New(Config{Model: "m"}); err != nil || r.cfg.BaseURL != DefaultBaseURL {
		t.Errorf("%v", err)
	}
}

func TestTheKeyIsNotPrinted(t *testing.T) {
	cfg := Config{Model: testModel, APIKey: testKey}
	log, lines := logged()
	log.Info("config", "reader", cfg)
	for _, s := range []string{fmt.Sprint(cfg), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), lines.String()} {
		if strings.Contains(s, testKey) || !strings.Contains(s, testModel) {
			t.Errorf("%q", s)
		}
	}
}
