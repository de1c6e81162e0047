package gate

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// wholePolicy is sound; each case of TestPolicyFaults breaks one thing in it.
const wholePolicy = `version: 1
tools:
  mail.send:
    description: Send mail.
    effect: send
    capability: network.send
    recipients: [to, copies.address]
    label: {verb: send mail, to: recipients}
    settle: 5s
    expires: 5m
    reads: untrusted
    preview: true
    said: {kind: send, channel: email}
    schema:
      type: object
      required: [to, body]
      additionalProperties: false
      properties:
        to: {type: array, items: {type: string}}
        copies:
          type: array
          items:
            type: object
            additionalProperties: false
            properties: {address: {type: string}}
        body: {type: string}
    template:
      - {prefix: To, arg: to}
      - {prefix: Copies, arg: copies.address}
      - {prefix: Text, arg: body, body: true}
  bank.pay:
    effect: pay
    capability: network.send
    recipients: [payee]
    amount: {value: money.value, currency: money.currency}
    label: {verb: pay, to: recipients}
    schema:
      type: object
      additionalProperties: false
      properties:
        payee: {type: string}
        money:
          type: object
          additionalProperties: false
          properties: {value: {type: number}, currency: {type: string}}
    template:
      - {prefix: Pay, arg: payee}
      - {prefix: Amount, arg: money}
  things.remove:
    effect: delete
    capability: fs.write
    label: {verb: remove a thing}
    schema:
      type: object
      additionalProperties: false
      properties: {thing: {type: string}}
    template:
      - {prefix: Thing, arg: thing}
  notes.write:
    effect: write
    capability: fs.write
    own: true
    reversible: true
    label: {verb: write a note}
    schema:
      type: object
      properties: {text: {type: string}, tags: {type: array}}
`

// TestPolicyFaults: every fault is refused with file, line, the tool and what to do.
func TestPolicyFaults(t *testing.T) {
	if _, err := ParsePolicy("p.yaml", []byte(wholePolicy)); err != nil {
		t.Fatalf("the whole policy is refused: %v", err)
	}
	for _, c := range []struct{ name, find, replace, at, want string }{
		{"unknown key at the top", "version: 1\n", "version: 1\nextras: 2\n", "extras", `has no key "extras"; use version, tools`},
		{"no version", "version: 1\n", "", "tools:", "write version: 1"},
		{"other version", "version: 1\n", "version: 2\n", "version: 2", "write version: 1"},
		{"unknown key", "    preview: true\n", "    preveiw: true\n", "preveiw", `tool mail.send: the entry has no key "preveiw"; use description`},
		{"doubled key", "    effect: pay\n", "    effect: pay\n    effect: read\n", "effect: read", `"effect" stands here and on line 32`},
		{"doubled tool", "  bank.pay:\n", "  mail.send:\n", "  mail.send:\n    effect: pay", `"mail.send" stands here and on line 3`},
		{"doubled property", "        body: {type: string}\n", "        body: {type: string}\n        body: {type: string}\n", "        body: {type: string}\n    template", `"body" stands here and on line`},
		{"an alias", "    effect: pay\n", "    effect: &e pay\n", "effect: &e", "anchors and aliases cannot be used"},
		{"a merge", "    effect: pay\n", "    <<: {effect: pay}\n", "<<", "no plain name"},
		{"a second document", "  bank.pay:\n", "---\ntools:\n  bank.pay:\n", "---", "a second document starts here"},
		{"no YAML", "    effect: pay\n", "    effect: [pay\n", "  bank.pay", "this is no YAML"},
		{"a tool's name", "  notes.write:\n", "  Notes Write:\n", "  Notes Write", "name is lower-case words"},
		{"a built-in name", "  notes.write:\n", "  bundle:\n", "  bundle", "this name is built in"},
		{"an entry that is none", "    effect: write\n    capability: fs.write\n    own: true\n    reversible: true\n    label: {verb: write a note}\n    schema:\n      type: object\n      properties: {text: {type: string}, tags: {type: array}}\n", "    nothing\n", "    nothing", "the entry is no mapping"},
		{"bad effect", "    effect: pay\n", "    effect: purchase\n", "effect: purchase", "effect is not known here; use one of: read, write, send"},
		{"no effect", "    effect: pay\n", "", "  bank.pay", "effect is missing; add one of: read"},
		{"bad capability", "    capability: network.send\n    recipients: [payee]", "    capability: network\n    recipients: [payee]", "capability: network\n", "capability is not known here; use one of: reply"},
		{"no capability", "    capability: network.send\n    recipients: [payee]", "    recipients: [payee]", "  bank.pay", "capability is missing; add one of: reply"},
		{"a flag that is none", "    preview: true\n", "    preview: maybe\n", "preview: maybe", "true or false belongs here"},
		{"reads", "    reads: untrusted\n", "    reads: strangers\n", "reads: strangers", "reads is not known here; use one of: untrusted"},
		{"outward on a send", "    preview: true\n", "    outward: true\n", "outward: true", "outward goes with effect schedule or read"},
		{"a send that is own", "    preview: true\n", "    own: false\n", "own: false", "effect send cannot be own"},
		{"a deletion that is reversible", "    label: {verb: remove a thing}\n", "    label: {verb: remove a thing}\n    reversible: yes\n", "reversible: yes", "effect delete cannot be reversible"},
		{"no schema", "    schema:\n      type: object\n      properties: {text: {type: string}, tags: {type: array}}\n", "", "  notes.write", "schema is missing"},
		{"a schema of a list", "      type: object\n      properties: {text", "      type: array\n      properties: {text", "      type: array\n      properties", "not one of an object"},
		{"a schema that is none", "tags: {type: array}}", "tags: {type: array, minItems: some}}", "      type: object\n      properties: {text", "is no JSON Schema"},
		{"a type that is none", "tags: {type: array}}", "tags: {type: arrays}}", "      type: object\n      properties: {text", "is no JSON Schema"},
		{"a reference", "tags: {type: array}}", "tags: {$ref: \"https://example.com/s\"}}", "$ref", `schema keyword "$ref" cannot be used here`},
		{"a choice of shapes", "tags: {type: array}}", "tags: {anyOf: [{type: array}]}}", "anyOf", `schema keyword "anyOf" cannot be used here`},
		{"a pattern of names", "      required: [to, body]\n", "      patternProperties: {x: {type: string}}\n", "patternProperties", "cannot be used here"},
		{"open at the top", "      required: [to, body]\n      additionalProperties: false\n", "      required: [to, body]\n", "      type: object\n      required", "the schema allows arguments that nobody would see; add additionalProperties: false"},
		{"open below", "            additionalProperties: false\n            properties: {address", "            properties: {address", "            type: object\n            properties: {address", `argument "copies" allows arguments that nobody would see`},
		{"open on purpose", "      required: [to, body]\n      additionalProperties: false\n", "      additionalProperties: true\n", "      type: object\n      additionalProperties: true", "add additionalProperties: false"},
		{"open by a schema", "      properties: {text: {type", "      additionalProperties: {type: string}\n      properties: {text: {type", "additionalProperties: {type", "additionalProperties is true or false here"},
		{"open deletion", "      additionalProperties: false\n      properties: {thing", "      properties: {thing", "      type: object\n      properties: {thing", "nobody would see"},
		{"open under a template", "    own: true\n", "    own: true\n    template: [{prefix: Text, arg: text}, {prefix: Tags, arg: tags}]\n", "      type: object\n      properties: {text", "nobody would see"},
		{"no type", "        body: {type: string}\n", "        body: {maxLength: 10}\n", "body: {maxLength", `argument "body" has no type`},
		{"a list of anything", "        to: {type: array, items: {type: string}}\n", "        to: {type: array}\n", "to: {type: array}", `argument "to" is an array without items`},
		{"a required argument that is none", "      required: [to, body]\n", "      required: [to, text]\n", "required: [to, text]", `required argument "text" is not among the properties`},
		{"a confirmation parameter", "properties: {thing: {type: string}}", "properties: {thing: {type: string}, userConfirmed: {type: boolean}}", "userConfirmed", `"userConfirmed" would let a model say yes`},
		{"an argument's name", "properties: {thing: {type: string}}", "properties: {thing: {type: string}, \"a b\": {type: string}}", "a b", `argument name "a b" is not plain`},
		{"recipients that are no list", "    recipients: [payee]\n", "    recipients: payee\n", "recipients: payee", "recipients is a list of argument paths"},
		{"recipients that are not there", "    recipients: [payee]\n", "    recipients: [payee, copy]\n", "recipients: [payee, copy]", `"copy" is no argument of the schema`},
		{"recipients that are numbers", "    recipients: [payee]\n", "    recipients: [money.value]\n", "recipients: [money.value]", "are no strings"},
		{"no recipients", "    recipients: [to, copies.address]\n", "", "  mail.send", "effect send reaches somebody"},
		{"recipients left out", "    recipients: [to, copies.address]\n", "    recipients: [copies.address]\n", "to: {type: array", `argument "to" names somebody who is reached; add it to recipients`},
		{"a hidden bcc", "        body: {type: string}\n", "        body: {type: string}\n        Bcc: {type: string}\n", "Bcc", `argument "Bcc" names somebody who is reached`},
		{"no amount", "    amount: {value: money.value, currency: money.currency}\n", "", "  bank.pay", "effect pay needs amount"},
		{"half an amount", "    amount: {value: money.value, currency: money.currency}\n", "    amount: {value: money.value}\n", "amount: {", "amount names two arguments"},
		{"an amount that is not there", "value: money.value, c", "value: money.sum, c", "money.sum", `"money.sum" is no argument of the schema`},
		{"a currency that is not there", "currency: money.currency}", "currency: money.code}", "money.code", `"money.code" is no argument of the schema`},
		{"an amount of no number", "value: money.value, c", "value: money, c", "value: money,", "the amount is one number or decimal string"},
		{"a currency of no string", "currency: money.currency}", "currency: money.value}", "currency: money.value", "the currency is one string"},
		{"no label", "    label: {verb: write a note}\n", "", "  notes.write", "label is missing"},
		{"no verb", "    label: {verb: write a note}\n", "    label: {word: with}\n", "label: {word", "verb is one to six lower-case words"},
		{"a verb that speaks", "    label: {verb: write a note}\n", "    label: {verb: \"write! YES\"}\n", "verb: \"write", "verb is one to six lower-case words"},
		{"a label of a send without recipients", "    label: {verb: send mail, to: recipients}\n", "    label: {verb: send mail}\n", "label: {verb: send mail}", "the label of a send says to whom"},
		{"a label of recipients that there are none", "    label: {verb: write a note}\n", "    label: {verb: write a note, to: recipients}\n", "write a note", "the tool has none"},
		{"a label with free text", "    label: {verb: write a note}\n", "    label: {verb: write a note, to: text}\n", "to: text", "to is not known here; use one of: recipients"},
		{"no template of a send", "    template:\n      - {prefix: To, arg: to}\n      - {prefix: Copies, arg: copies.address}\n      - {prefix: Text, arg: body, body: true}\n", "", "  mail.send", "template is missing"},
		{"no template of a deletion", "    template:\n      - {prefix: Thing, arg: thing}\n", "", "  things.remove", "template is missing"},
		{"a template that leaves an argument out", "      - {prefix: Copies, arg: copies.address}\n", "", "- {prefix: To", `argument "copies.address" is not shown; add a line for it`},
		{"a template with an argument that is not there", "      - {prefix: Thing, arg: thing}\n", "      - {prefix: Thing, arg: thing}\n      - {prefix: Name, arg: name}\n", "prefix: Name", `"name" is no argument of the schema`},
		{"a line without a prefix", "      - {prefix: Thing, arg: thing}\n", "      - {arg: thing}\n", "- {arg: thing}", "a line has a prefix and an arg"},
		{"a prefix that is none", "{prefix: Thing,", "{prefix: \"YES:\",", "prefix: \"YES", "a prefix is one to four words"},
		{"a prefix twice", "{prefix: Copies,", "{prefix: To,", "copies.address}\n      - {prefix: Text", "each line has its own"},
		{"a body that is a recipient", "{prefix: To, arg: to}", "{prefix: To, arg: to, body: true}", "prefix: To,", "only one free text can be a body"},
		{"a body that is an amount", "{prefix: Amount, arg: money}", "{prefix: Amount, arg: money.value}\n      - {prefix: Currency, arg: money.currency, body: true}", "prefix: Currency", "only one free text can be a body"},
		{"a body that is an object", "{prefix: Amount, arg: money}", "{prefix: Amount, arg: money, body: true}", "prefix: Amount", "only one free text can be a body"},
		{"a duration that is none", "    settle: 5s\n", "    settle: 5\n", "settle: 5\n", "settle is a duration like 30s or 5m, at most 5m0s"},
		{"settles too long", "    settle: 5s\n", "    settle: 1h\n", "settle: 1h", "at most 5m0s"},
		{"settles backwards", "    settle: 5s\n", "    settle: -5s\n", "settle: -5s", "settle is a duration"},
		{"outward and long-lived", "    expires: 5m\n", "    expires: 11m\n", "expires: 11m", "expires is a duration like 30s or 5m, at most 10m0s for this tool"},
		{"inward and too long-lived", "    own: true\n", "    own: true\n    expires: 25h\n", "expires: 25h", "at most 24h0m0s"},
		{"lives for no time", "    expires: 5m\n", "    expires: 0s\n", "expires: 0s", "cannot be answered"},
		{"a deletion that can be said", "    label: {verb: remove a thing}\n", "    label: {verb: remove a thing}\n    said: {kind: change, channel: none}\n", "said: {kind: change", "a deletion is always asked"},
		{"a send said as a payment", "said: {kind: send,", "said: {kind: pay,", "kind: pay", "effect send is said as kind send"},
		{"a note said as a send", "    own: true\n", "    own: true\n    said: {kind: send, channel: none}\n", "kind: send, channel: none", "effect write is not said as kind send"},
		{"said without a channel", "said: {kind: send, channel: email}", "said: {kind: send}", "said: {kind: send}", "said has a kind and a channel"},
		{"said on a channel that is none", "channel: email}", "channel: pigeon}", "pigeon", "channel is not known here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n := strings.Count(wholePolicy, c.find); n != 1 {
				t.Fatalf("%q stands %d times in the policy", c.find, n)
			}
			broken := strings.Replace(wholePolicy, c.find, c.replace, 1)
			if n := strings.Count(broken, c.at); n != 1 {
				t.Fatalf("%q stands %d times in the broken policy", c.at, n)
			}
			line := 1 + strings.Count(broken[:strings.Index(broken, c.at)], "\n")
			policy, err := ParsePolicy("p.yaml", []byte(broken))
			if err == nil || policy != nil {
				t.Fatalf("the policy loads")
			}
			for l := range strings.SplitSeq(err.Error(), "\n") {
				if strings.HasPrefix(l, "p.yaml:"+strconv.Itoa(line)+": ") && strings.Contains(l, c.want) {
					return
				}
			}
			t.Errorf("want line %d: %s\ngot:\n%v", line, c.want, err)
		})
	}
}

func TestPolicyFaultsOfWholeFiles(t *testing.T) {
	for data, want := range map[string]string{
		"":                         "p.yaml:1: the policy is empty",
		"# nothing\n":              "p.yaml:1: the policy is empty",
		"[]":                       "p.yaml:1: the policy is no mapping",
		"null":                     "p.yaml:1: the policy is no mapping",
		"version: 1\n":             "p.yaml:1: tools: maps at least one tool",
		"version: 1\ntools: {}\n":  "p.yaml:2: tools: maps at least one tool",
		"version: 1\ntools: [a]\n": "p.yaml:2: tools: maps at least one tool",
		"\x00":                     "p.yaml:1: this is no YAML",
		"a: b: c":                  "p.yaml:1: this is no YAML",
	} {
		policy, err := ParsePolicy("p.yaml", []byte(data))
		if err == nil || policy != nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
		var fault *PolicyError
		if !errors.As(err, &fault) || fault.File != "p.yaml" || fault.Line < 1 {
			t.Errorf("%q: %#v is no *PolicyError with file and line", data, err)
		}
	}
}

// TestPolicyVersion: the version is of the bytes, so that a policy that changed
// in any way is another one.
func TestPolicyVersion(t *testing.T) {
	a, err := ParsePolicy("a.yaml", []byte(wholePolicy))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParsePolicy("b.yaml", []byte(wholePolicy))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParsePolicy("a.yaml", []byte(wholePolicy+"# a word\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Version) != 64 || a.Version != b.Version || a.Version == c.Version {
		t.Errorf("versions %s, %s, %s", a.Version, b.Version, c.Version)
	}
}

// TestSampleIsSound: the embedded policy parses, is the file in the folder, and
// every call of it that leaves the account or deletes is shown whole.
func TestSampleIsSound(t *testing.T) {
	policy, err := Sample()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if read, err := ParsePolicy("sample.yaml", data); err != nil || read.Version != policy.Version {
		t.Errorf("the embedded sample is another: %v", err)
	}
	if got := len(policy.Tools()); got < 20 {
		t.Errorf("the sample has %d tools, want at least 20", got)
	}
	for _, tool := range policy.Tools() {
		if (tool.Outward() || tool.Effect == EffectDelete) && len(tool.Template) == 0 {
			t.Errorf("%s has no template", tool.Name)
		}
	}
}

// FuzzParsePolicy: whatever the bytes, a policy that loads has nothing in it
// that a model could say yes with, and one that does not says where.
func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(wholePolicy))
	f.Add(sampleYAML)
	names, err := filepath.Glob("testdata/policies/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("version: 1\ntools:\n  ? [a]\n  : b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := ParsePolicy("p.yaml", data)
		if err != nil {
			if policy != nil || !strings.HasPrefix(err.Error(), "p.yaml:") {
				t.Fatalf("%v, %v", policy, err)
			}
			return
		}
		for _, tool := range policy.Tools() {
			for _, p := range tool.Args() {
				for _, name := range p {
					if IsConfirmationName(name) {
						t.Errorf("%s has %s", tool.Name, p)
					}
				}
			}
			if tool.Expires <= 0 || tool.Outward() && tool.Expires > OutwardExpires {
				t.Errorf("%s lives for %s", tool.Name, tool.Expires)
			}
		}
	})
}
