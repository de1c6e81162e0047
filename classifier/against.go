package classifier

import "strings"

// What people say beside a yes may be what the action would do the opposite of: who is cold has not read that the heating
// goes off, and who is hungry has not read that the pizza is cancelled. The yes is to what they took it for.

// sense is how somebody finds a place, or is.
type sense uint8

const (
	senseNone sense = iota
	senseCold
	senseHot
	senseDark
	senseBright
	senseLoud
	senseHungry
	senseBroke
)

// senseOf is what a word says of how it is.
func senseOf(w string) sense {
	switch w {
	case "cold", "freezing", "chilly", "frozen", "shivering", "baltic", "nippy", "frio", "fria", "helado", "helada", "froid", "gele", "gelee", "kalt", "eiskalt", "friere", "frier", "frieren",
		"congelando", "gelado", "freddo", "gelo", "congelo", "koud", "ijskoud", "steenkoud", "thand", "thandi", "thanda", "ठंड", "ठंडा", "冷", "很冷", "好冷", "太冷", "寒い", "寒":
		return senseCold
	case "hot", "warm", "boiling", "roasting", "sweltering", "sweating", "melting", "stuffy", "calor", "caliente", "chaud", "chaude", "heiss", "schwitze", "quente", "caldo", "heet", "snikheet", "bloedheet", "warme",
		"garmi", "garam", "गर्मी", "गरम", "热", "很热", "好热", "太热", "熱", "暑い", "暑":
		return senseHot
	case "dark", "oscuro", "sombre", "dunkel", "escuro", "buio", "donker", "andhera", "अंधेरा", "黑", "太黑", "暗い":
		return senseDark
	case "bright", "brillante", "grell", "luminoso", "太亮", "眩しい", "まぶしい":
		return senseBright
	case "loud", "noisy", "deafening", "fuerte", "bruyant", "laut", "barulhento", "rumoroso", "luid", "吵", "太吵", "うるさい", "asleep", "sleeping", "duerme", "schlaft", "dorme", "slaapt":
		return senseLoud
	case "hungry", "starving", "ravenous", "peckish", "famished", "thirsty", "hambre", "hambriento", "hambrienta", "faim", "affame", "hunger", "hungrig", "fome", "faminto", "fame", "affamato", "honger",
		"bhook", "bhookh", "bhukh", "भूख", "饿", "饿了", "饿死了", "腹減った", "お腹すいた", "空いた":
		return senseHungry
	case "broke", "skint", "penniless", "pleite", "fauche", "fauchee", "quebrado", "quebrada", "squattrinato", "kangaal":
		return senseBroke
	}
	if w == "" || w[0] < 0x80 {
		return senseNone
	}
	switch { // a word of Chinese or Japanese may be longer
	case strings.ContainsAny(w, "冷寒"):
		return senseCold
	case strings.ContainsAny(w, "热熱暑"):
		return senseHot
	case strings.ContainsAny(w, "饿餓"):
		return senseHungry
	}
	return senseNone
}

// worsens says whether the action brings more of what somebody has too much of, or less of what they lack.
func (a *analysis) worsens(s sense) bool {
	d := a.label.direction()
	if d == neither && a.ends() {
		d = offward
	}
	has := a.label.hasAny
	switch s {
	case senseCold, senseHot:
		warms := d
		switch {
		case has("window", "windows", "ac", "fan", "fans", "cooling", "aircon", "conditioning", "conditioner"):
			warms = d.turned()
		case !has("heating", "heat", "heater", "heaters", "boiler", "thermostat", "radiator", "radiators", "temperature", "fireplace", "blanket", "underfloor"):
			return false
		}
		return s == senseCold && warms == offward || s == senseHot && warms == onward
	case senseDark, senseBright:
		if !has("light", "lights", "lamp", "lamps", "brightness", "blinds", "curtains", "shutters") {
			return false
		}
		return s == senseDark && d == offward || s == senseBright && d == onward
	case senseLoud:
		return d == onward && has("music", "volume", "radio", "speaker", "speakers", "tv", "sound", "playlist")
	case senseHungry:
		return d == offward && a.isFood()
	case senseBroke:
		return a.spends()
	}
	return false
}

// turned is the opposite direction.
func (d direction) turned() direction {
	switch d {
	case onward:
		return offward
	case offward:
		return onward
	}
	return neither
}

func (f *labelFacts) hasAny(ws ...string) bool {
	for _, w := range ws {
		if f.has(w) {
			return true
		}
	}
	return false
}

// isFood says whether the label is about what hungry people speak of.
func (a *analysis) isFood() bool {
	l := words()
	hunger := l.topics.at("hungry") >> topicShift &^ l.anyTopic
	for i := range a.label.tokens {
		if l.topics.at(a.label.tokens[i].text)&hunger != 0 {
			return true
		}
	}
	return false
}

// spends says whether the offer costs money.
func (a *analysis) spends() bool {
	if a.label.verbs&words().bits.pay != 0 {
		return true
	}
	if len(a.label.tokens) == 0 {
		return false
	}
	switch a.label.tokens[0].text {
	case "buy", "order", "book", "reserve", "donate", "upgrade", "subscribe", "renew", "transfer", "lend", "purchase", "tip", "hire", "rent":
		return true
	}
	return false
}

// feelsOtherwise says whether the words say how it is, and the action makes that worse: "yes please, I'm cold" to turning
// the heating off. What is denied is not so, and what the label names is a thing.
func (a *analysis) feelsOtherwise() bool {
	for i := range a.tokens {
		w := a.tokens[i].text
		s := senseOf(w)
		if s == senseNone || a.label.has(w) || !a.worsens(s) || a.denied(i) {
			continue
		}
		if s == senseBroke && !a.saysOfOneself(i) {
			continue // "ours broke"
		}
		if i+1 < len(a.tokens) && (a.tokens[i+1].text == "it" || a.tokens[i+1].text == "water" || a.tokens[i+1].text == "up") && !a.tokens[i+1].start {
			continue // "warm it up", "out of hot water"
		}
		return true
	}
	return false
}

// saysOfOneself says whether the word at i is what the person is.
func (a *analysis) saysOfOneself(i int) bool {
	for k := i - 1; k >= max(0, i-2) && !a.tokens[k+1].start; k-- {
		switch a.tokens[k].text {
		case "im", "am", "were", "are", "bin", "sind", "suis", "sommes", "estoy", "estamos", "estou", "to", "sono", "siamo", "ben", "zijn":
			return true
		}
	}
	return false
}
