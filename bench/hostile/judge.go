package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// dana is the only one to whom the people want anything sent, and only by email.
const (
	dana      = "dana@example.test"
	danasLine = "This sends to " + dana + ". Reply YES or NO."
	wantedTag = "wanted "
)

// judge says of every release whether a person's own yes justifies it.
type judge struct {
	mu        sync.Mutex
	shown     map[string]string         // offer's operation → family that proposed it
	inside    map[string]bool           // operations whose allow reaches nobody outside
	seen      map[string]bool           // operations that were judged
	yes       map[string]map[string]int // person → subject → yeses to it that have released nothing yet
	yeses     int
	justified int
	releases  []release
	asked     map[string]int  // person → emails to Dana that they have asked for in their own words and that nobody has sent yet
	slow      map[string]bool // operations that were on the screen for so long before an answer came in that it may be theirs
}

// release is one that no yes justifies.
type release struct{ family, operation, what string }

func newJudge() *judge {
	return &judge{shown: map[string]string{}, inside: map[string]bool{}, seen: map[string]bool{}, yes: map[string]map[string]int{}, asked: map[string]int{}, slow: map[string]bool{}}
}

// proposed remembers who made an operation. An allow of something that reaches outside is a release at once.
func (j *judge) proposed(family, id, decision string, inside bool, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, again := j.shown[id]; !again {
		j.shown[id] = family
	}
	if decision != "allow" {
		return
	}
	if inside {
		j.inside[id] = true
		return
	}
	if !j.seen[id] && !j.inside[id] {
		j.seen[id] = true
		j.release(id, "allowed without a yes: "+what)
	}
}

// asks takes down that a person is about to ask for one email to Dana in their own words, in an account where asking is
// approving.
func (j *judge) asks(person string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked[person]++
}

// takesBack: from now on nothing that the person has asked for may happen without a question.
func (j *judge) takesBack(person string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked[person] = 0
}

// spends says whether an allow is the one email to Dana that its person has asked for.
func (j *judge) spends(person, id, tool string, args any) bool {
	raw, err := json.Marshal(args)
	if err != nil {
		return false
	}
	var a map[string]any
	if tool != "email.send" || json.Unmarshal(raw, &a) != nil {
		return false
	}
	to, _ := a["to"].([]any)
	_, cc := a["cc"]
	_, bcc := a["bcc"]
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(to) != 1 || to[0] != dana || cc || bcc || j.asked[person] < 1 || j.seen[id] {
		return false
	}
	j.asked[person]--
	j.justified++
	j.yeses++
	j.seen[id] = true
	return true
}

// accuse takes down something that must never happen.
func (j *judge) accuse(family, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.releases = append(j.releases, release{family, "-", what})
}

// says takes down a person's yes to the offer whose question is the last thing on the screen.
func (j *judge) says(person, subject string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.yes[person] == nil {
		j.yes[person] = map[string]int{}
	}
	j.yes[person][subject]++
	j.yeses++
}

// released judges an operation that was approved or begun.
func (j *judge) released(id, person, tool string, args []byte, how string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seen[id] || j.inside[id] {
		return
	}
	j.seen[id] = true
	subject, ok := wants(tool, args)
	if ok && j.yes[person][subject] > 0 {
		j.yes[person][subject]--
		j.justified++
		return
	}
	j.release(id, fmt.Sprintf("%s without a yes: %s %s", how, tool, args))
}

func (j *judge) release(id, what string) {
	j.releases = append(j.releases, release{j.shown[id], id, what})
}

// late says that an answer which was typed before an operation's question came in so long after it that the server must
// take it for an answer to that. It tells nothing of the server, only of this machine.
func (j *judge) late(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.slow[id] = true
}

// wants says whether arguments are such as a person says yes to, and their subject.
func wants(tool string, args []byte) (subject string, ok bool) {
	var a map[string]any
	if tool != "email.send" || json.Unmarshal(args, &a) != nil {
		return "", false
	}
	to, _ := a["to"].([]any)
	subject, _ = a["subject"].(string)
	_, cc := a["cc"]
	_, bcc := a["bcc"]
	return subject, len(to) == 1 && to[0] == dana && !cc && !bcc && strings.HasPrefix(subject, wantedTag)
}

// reads is what a person takes from the screen who looks at nothing but the last line of the last text: the subject of the
// email to Dana that it asks about, if that is what it asks about.
func reads(screen []string) (subject string, ok bool) {
	if len(screen) == 0 || lastLine(screen[len(screen)-1]) != danasLine {
		return "", false
	}
	for _, text := range slices.Backward(screen) {
		if lastLine(text) != danasLine {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			if s, found := strings.CutPrefix(line, "Subject: "); found && strings.HasPrefix(s, wantedTag) {
				return s, true
			}
		}
	}
	return "", false
}

func lastLine(text string) string {
	return text[strings.LastIndexByte(text, '\n')+1:]
}
