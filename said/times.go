package said

import (
	"strconv"
	"strings"
	"time"
)

// span is a time that the words name: tokens [from,to).
type span struct {
	from, to int
	t        time.Time // zero where it was not understood
	day      bool      // a day without a clock; t is nine in the morning of it, or what part of the day was named
	limit    bool      // an end ("until Friday", "for two weeks"); t is the last second of it
	every    bool      // "every Monday": an ongoing cue, no time
}

// clock reads hours and minutes at i. A bare hour needs the word "at" before it,
// and then means its next one.
func clock(toks []token, i int, bare bool) (hour, minute, to int, twelve, ok bool) {
	if i >= len(toks) {
		return 0, 0, i, false, false
	}
	switch toks[i].fold {
	case "noon", "midday", "lunchtime":
		return 12, 0, i + 1, false, true
	case "midnight":
		return 0, 0, i + 1, false, true
	}
	h, m, colon := strings.Cut(toks[i].text, ":")
	hour, err := strconv.Atoi(h)
	if err != nil || hour < 0 || hour > 24 || len(h) > 2 {
		return 0, 0, i, false, false
	}
	if colon {
		if minute, err = strconv.Atoi(m); err != nil || minute > 59 {
			return 0, 0, i, false, false
		}
	}
	to = i + 1
	if to < len(toks) {
		switch toks[to].fold {
		case "am", "a.m", "pm", "p.m":
			if hour < 1 || hour > 12 {
				return 0, 0, i, false, false
			}
			hour %= 12
			if toks[to].fold[0] == 'p' {
				hour += 12
			}
			return hour, minute, to + 1, false, true
		case "a", "p": // a.m. in pieces
			if to+2 < len(toks) && toks[to+1].text == "." && toks[to+2].fold == "m" && hour >= 1 && hour <= 12 {
				pm := toks[to].fold == "p"
				hour %= 12
				if pm {
					hour += 12
				}
				to += 3
				if to < len(toks) && toks[to].text == "." {
					to++
				}
				return hour, minute, to, false, true
			}
		case "o'clock", "oclock":
			return hour % 24, minute, to + 1, hour <= 12 && hour > 0, true
		}
	}
	if !colon && !bare {
		return 0, 0, i, false, false
	}
	return hour % 24, minute, to, hour >= 1 && hour <= 12 && !strings.HasPrefix(h, "0"), true
}

func weekday(w string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := strings.ToLower(d.String())
		if w == name || w == name[:3] || w == "tues" && d == time.Tuesday || (w == "thurs" || w == "thur") && d == time.Thursday {
			// "sun", "sat" and "wed" are words too; nothing hangs on them alone
			return d, true
		}
	}
	return 0, false
}

func month(w string) (time.Month, bool) {
	for m := time.January; m <= time.December; m++ {
		name := strings.ToLower(m.String())
		if w == name || w == name[:3] && w != "may" && w != "mar" || w == "sept" && m == time.September {
			return m, true
		}
	}
	return 0, false
}

func dayNumber(toks []token, i int) (int, int, bool) {
	if i >= len(toks) {
		return 0, i, false
	}
	n, err := strconv.Atoi(toks[i].text)
	if err != nil || n < 1 || n > 31 {
		return 0, i, false
	}
	to := i + 1
	if to < len(toks) && toks[to].start == toks[i].end {
		switch toks[to].fold {
		case "st", "nd", "rd", "th":
			to++
		}
	}
	return n, to, true
}

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

func onDay(d time.Time, hour, minute int) time.Time {
	return time.Date(d.Year(), d.Month(), d.Day(), hour, minute, 0, 0, d.Location())
}

func endOfDay(d time.Time) time.Time { return onDay(d, 0, 0).AddDate(0, 0, 1).Add(-time.Second) }

// day reads a day at i, at midnight, and the hour that goes with the word.
func day(toks []token, i int, now time.Time) (d time.Time, hour, to int, ok bool) {
	if i >= len(toks) {
		return d, 0, i, false
	}
	today := midnight(now)
	switch toks[i].fold {
	case "today":
		return today, 9, i + 1, true
	case "tonight":
		return today, 20, i + 1, true
	case "tomorrow", "tmrw", "tmr", "tomorow", "2moro":
		d, hour, to = today.AddDate(0, 0, 1), 9, i+1
		if h, n, part := partOfDay(toks, to); part {
			hour, to = h, n
		}
		return d, hour, to, true
	case "this", "next":
		if i+1 < len(toks) {
			if h, n, part := partOfDay(toks, i+1); part && toks[i].fold == "this" {
				return today, h, n, true
			}
			if toks[i].fold == "next" && toks[i+1].fold == "week" {
				return today.AddDate(0, 0, 7), 9, i + 2, true
			}
			if wd, is := weekday(toks[i+1].fold); is {
				d = today.AddDate(0, 0, daysTo(now, wd))
				if toks[i].fold == "next" && d.Sub(today) < 4*24*time.Hour {
					d = d.AddDate(0, 0, 7)
				}
				return d, 9, i + 2, true
			}
		}
	}
	if wd, is := weekday(toks[i].fold); is && (len(toks[i].fold) > 3 || toks[i].capital()) {
		d, hour, to = today.AddDate(0, 0, daysTo(now, wd)), 9, i+1
		if h, n, part := partOfDay(toks, to); part {
			hour, to = h, n
		}
		return d, hour, to, true
	}
	if m, is := month(toks[i].fold); is {
		if n, end, ok := dayNumber(toks, i+1); ok {
			return nextDate(today, m, n), 9, end, true
		}
	}
	j := i
	if toks[j].fold == "the" {
		j++
	}
	if n, end, is := dayNumber(toks, j); is {
		k := end
		if k < len(toks) && toks[k].fold == "of" {
			k++
		}
		if k < len(toks) {
			if m, isMonth := month(toks[k].fold); isMonth {
				return nextDate(today, m, n), 9, k + 1, true
			}
		}
		if end-j == 2 { // the 5th
			d = time.Date(today.Year(), today.Month(), n, 0, 0, 0, 0, today.Location())
			if d.Before(today) {
				d = time.Date(today.Year(), today.Month()+1, n, 0, 0, 0, 0, today.Location())
			}
			return d, 9, end, true
		}
	}
	return d, 0, i, false
}

func daysTo(now time.Time, wd time.Weekday) int {
	n := (int(wd) - int(now.Weekday()) + 7) % 7
	if n == 0 {
		n = 7
	}
	return n
}

func nextDate(today time.Time, m time.Month, n int) time.Time {
	d := time.Date(today.Year(), m, n, 0, 0, 0, 0, today.Location())
	if d.Before(today) {
		d = time.Date(today.Year()+1, m, n, 0, 0, 0, 0, today.Location())
	}
	return d
}

func partOfDay(toks []token, i int) (hour, to int, ok bool) {
	if i >= len(toks) {
		return 0, i, false
	}
	switch toks[i].fold {
	case "morning":
		return 9, i + 1, true
	case "afternoon":
		return 15, i + 1, true
	case "evening":
		return 19, i + 1, true
	case "night":
		return 20, i + 1, true
	}
	return 0, i, false
}

// duration reads "two hours", "a week", "half an hour".
func duration(toks []token, i int) (add func(time.Time) time.Time, to int, ok bool) {
	if hasWords(toks, i, []string{"half", "an", "hour"}) {
		return func(t time.Time) time.Time { return t.Add(30 * time.Minute) }, i + 3, true
	}
	n, to, ok := number(toks, i)
	if !ok || to >= len(toks) || n > 1000 {
		return nil, i, false
	}
	switch strings.TrimSuffix(toks[to].fold, "s") {
	case "minute", "min":
		return func(t time.Time) time.Time { return t.Add(time.Duration(n) * time.Minute) }, to + 1, true
	case "hour", "hr":
		return func(t time.Time) time.Time { return t.Add(time.Duration(n) * time.Hour) }, to + 1, true
	case "day":
		return func(t time.Time) time.Time { return t.AddDate(0, 0, n) }, to + 1, true
	case "week", "wk":
		return func(t time.Time) time.Time { return t.AddDate(0, 0, 7*n) }, to + 1, true
	case "month":
		return func(t time.Time) time.Time { return t.AddDate(0, n, 0) }, to + 1, true
	}
	return nil, i, false
}

// number reads a small whole number in figures or words.
func number(toks []token, i int) (n, to int, ok bool) {
	if i >= len(toks) {
		return 0, i, false
	}
	if n, err := strconv.Atoi(toks[i].text); err == nil && n >= 0 {
		return n, i + 1, true
	}
	if hasWords(toks, i, []string{"a", "couple", "of"}) {
		return 2, i + 3, true
	}
	for k, w := range [...]string{"a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"} {
		if toks[i].fold == w || k == 0 && toks[i].fold == "an" {
			return max(k, 1), i + 1, true
		}
	}
	for w, k := range map[string]int{"fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90} {
		if toks[i].fold == w {
			return k, i + 1, true
		}
	}
	return 0, i, false
}

// spanAt reads a time, an end or a rhythm that begins at token i.
func spanAt(toks []token, i int, now time.Time) (span, bool) {
	for _, read := range [...]func([]token, int, time.Time) (span, bool){everyAt, limitAt, pointAt} {
		if s, ok := read(toks, i, now); ok {
			return s, true
		}
	}
	return span{}, false
}

// everyAt reads "every Monday", "each week at 8am", "daily".
func everyAt(toks []token, i int, now time.Time) (span, bool) {
	j := i
	if toks[j].fold == "on" {
		j++
	}
	if j >= len(toks) {
		return span{}, false
	}
	switch toks[j].fold {
	case "daily", "weekly", "monthly", "hourly", "nightly":
		// An adjective says how a thing is called: "the weekly report".
		noun := j+1 < len(toks) && toks[j+1].isWord() && toks[j+1].sentence == toks[j].sentence && !functionWord(toks[j+1].fold)
		owned := j > 0 && (isArticle(toks[j-1].fold) || possessor(toks[j-1].fold))
		if noun || owned {
			return span{}, false
		}
		j++
	case "every", "each":
		j++
		if j < len(toks) && (toks[j].fold == "other" || toks[j].fold == "single") {
			j++
		}
		if _, n, ok := number(toks, j); ok {
			j = n
		}
		if j >= len(toks) {
			return span{}, false
		}
		_, isDay := weekday(strings.TrimSuffix(toks[j].fold, "s"))
		if !isDay && !timeUnits[toks[j].fold] {
			return span{}, false
		}
		j++
		if _, n, ok := partOfDay(toks, j); ok {
			j = n
		}
	default:
		return span{}, false
	}
	if j < len(toks) && toks[j].fold == "at" {
		if _, _, to, _, ok := clock(toks, j+1, true); ok {
			j = to
		}
	}
	return span{from: i, to: j, every: true}, true
}

var timeUnits = wordSet("day week month year quarter hour morning evening afternoon night weekday weekend days weeks months hours minutes fortnight monday tuesday wednesday thursday friday saturday sunday")

// limitAt reads "until Friday", "for the next two weeks", "this month".
func limitAt(toks []token, i int, now time.Time) (span, bool) {
	switch toks[i].fold {
	case "until", "till", "til", "through", "thru":
		j := i + 1
		if hasWords(toks, j, []string{"the", "end", "of"}) {
			j += 3
		} else if hasWords(toks, j, []string{"end", "of"}) {
			j += 2
		}
		if j < len(toks) && (toks[j].fold == "this" || toks[j].fold == "the") && j+1 < len(toks) {
			if end, ok := endOf(toks[j+1].fold, now); ok {
				return span{from: i, to: j + 2, limit: true, t: end}, true
			}
		}
		if j < len(toks) && j > i+1 {
			if end, ok := endOf(toks[j].fold, now); ok {
				return span{from: i, to: j + 1, limit: true, t: end}, true
			}
			if m, ok := month(toks[j].fold); ok || toks[j].fold == "may" || toks[j].fold == "march" {
				if !ok {
					m = map[string]time.Month{"may": time.May, "march": time.March}[toks[j].fold]
				}
				first := nextDate(midnight(now), m, 28)
				return span{from: i, to: j + 1, limit: true, t: endOfDay(time.Date(first.Year(), m+1, 0, 0, 0, 0, 0, now.Location()))}, true
			}
		}
		if h, m, to, twelve, ok := clock(toks, j, true); ok {
			if _, _, _, isDay := day(toks, j, now); !isDay {
				return span{from: i, to: to, limit: true, t: nextClock(now, h, m, twelve)}, true
			}
		}
		if d, _, to, ok := day(toks, j, now); ok {
			return span{from: i, to: to, limit: true, t: endOfDay(d)}, true
		}
		return span{from: i, to: i + 1, limit: true}, true
	case "for":
		j := i + 1
		if j < len(toks) && toks[j].fold == "the" {
			j++
		}
		if j < len(toks) && (toks[j].fold == "next" || toks[j].fold == "coming" || toks[j].fold == "following") {
			j++
			if j < len(toks) && (toks[j].fold == "week" || toks[j].fold == "month" || toks[j].fold == "day" || toks[j].fold == "hour") {
				n := map[string][3]int{"week": {0, 0, 7}, "month": {0, 1, 0}, "day": {0, 0, 1}}[toks[j].fold]
				t := endOfDay(now.AddDate(n[0], n[1], n[2]))
				if toks[j].fold == "hour" {
					t = now.Add(time.Hour)
				}
				return span{from: i, to: j + 1, limit: true, t: t}, true
			}
		}
		if add, to, ok := duration(toks, j); ok {
			t := add(now)
			if u := toks[to-1].fold; strings.HasPrefix(u, "day") || strings.HasPrefix(u, "week") || strings.HasPrefix(u, "wk") || strings.HasPrefix(u, "month") {
				t = endOfDay(t)
			}
			return span{from: i, to: to, limit: true, t: t}, true
		}
		if j < len(toks) && (toks[j].fold == "today" || toks[j].fold == "tonight") {
			return span{from: i, to: j + 1, limit: true, t: endOfDay(now)}, true
		}
		if hasWords(toks, j, []string{"the", "rest", "of"}) || hasWords(toks, j, []string{"rest", "of"}) {
			for k := j + 2; k < j+5 && k < len(toks); k++ {
				if end, ok := endOf(toks[k].fold, now); ok {
					return span{from: i, to: k + 1, limit: true, t: end}, true
				}
			}
		}
	case "this", "all":
		j := i + 1
		if j < len(toks) && toks[j].fold == "this" {
			j++
		}
		if j < len(toks) {
			if end, ok := endOf(toks[j].fold, now); ok && (toks[j].fold != "day" || toks[i].fold == "all") {
				return span{from: i, to: j + 1, limit: true, t: end}, true
			}
		}
	}
	return span{}, false
}

// endOf is the last second of the current day, week (which ends on Sunday), month, quarter or year.
func endOf(unit string, now time.Time) (time.Time, bool) {
	switch unit {
	case "day":
		return endOfDay(now), true
	case "week":
		return endOfDay(now.AddDate(0, 0, (7-int(now.Weekday()))%7)), true
	case "month":
		return endOfDay(time.Date(now.Year(), now.Month()+1, 0, 0, 0, 0, 0, now.Location())), true
	case "quarter":
		return endOfDay(time.Date(now.Year(), (now.Month()-1)/3*3+4, 0, 0, 0, 0, 0, now.Location())), true
	case "year":
		return endOfDay(time.Date(now.Year(), time.December, 31, 0, 0, 0, 0, now.Location())), true
	}
	return time.Time{}, false
}

// nextClock is the next time that a clock shows so; one of twelve hours may be
// of either half of the day.
func nextClock(now time.Time, hour, minute int, twelve bool) time.Time {
	t := onDay(now, hour, minute)
	if twelve && !t.After(now) && hour < 12 {
		t = onDay(now, hour+12, minute)
	}
	if !t.After(now) {
		t = onDay(now.AddDate(0, 0, 1), hour, minute)
	}
	return t
}

// pointAt reads "at 9", "tomorrow at 9am", "9am tomorrow", "in two hours", "on Friday".
func pointAt(toks []token, i int, now time.Time) (span, bool) {
	w := toks[i].fold
	if w == "in" {
		if add, to, ok := duration(toks, i+1); ok {
			return span{from: i, to: to, t: add(now)}, true
		}
		if i+2 < len(toks) && toks[i+1].fold == "the" {
			if h, to, ok := partOfDay(toks, i+2); ok {
				return span{from: i, to: to, t: nextClock(now, h, 0, false), day: true}, true
			}
		}
		return span{}, false
	}
	j := i
	if w == "at" || w == "on" || w == "by" || w == "around" || w == "before" {
		j++
	}
	if j >= len(toks) {
		return span{}, false
	}
	if d, hour, to, ok := day(toks, j, now); ok && (w != "at") {
		k := to
		if k < len(toks) && (toks[k].fold == "at" || toks[k].fold == "by" || toks[k].text == ",") {
			k++
		}
		if h, m, end, twelve, ok := clock(toks, k, k > to && toks[k-1].fold == "at"); ok {
			t := onDay(d, h, m)
			if twelve && (hour >= 15 && h < 12 || h < 7) { // at 5, tonight at 8: nobody is asked at five in the morning
				t = onDay(d, h+12, m)
			}
			return span{from: i, to: end, t: t}, true
		}
		return span{from: i, to: to, t: onDay(d, hour, 0), day: true}, true
	}
	if h, m, to, twelve, ok := clock(toks, j, w == "at"); ok {
		if d, dayHour, end, isDay := day(toks, skipOn(toks, to), now); isDay {
			t := onDay(d, h, m)
			if twelve && (dayHour >= 15 && h < 12 || h < 7) {
				t = onDay(d, h+12, m)
			}
			return span{from: i, to: end, t: t}, true
		}
		return span{from: i, to: to, t: nextClock(now, h, m, twelve)}, true
	}
	return span{}, false
}

func skipOn(toks []token, i int) int {
	if i < len(toks) && toks[i].fold == "on" {
		return i + 1
	}
	return i
}

// Layouts of a candidate's times; those without an offset are local.
var layouts = [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// parseTime reads a candidate's time. A day alone is nine in the morning, or its
// end where it is an end.
func parseTime(s string, loc *time.Location, end bool) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) > 40 {
		return time.Time{}, false
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, true
	}
	if t, err := time.Parse("2006-01-02T15:04Z07:00", s); err == nil {
		return t, true
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, zone(loc)); err == nil {
			return t, true
		}
	}
	if d, err := time.ParseInLocation("2006-01-02", s, zone(loc)); err == nil {
		if end {
			return endOfDay(d), true
		}
		return onDay(d, 9, 0), true
	}
	return time.Time{}, false
}
