package storetest

import "testing"

// Run runs the whole suite. Every test opens a store of its own.
func Run(t *testing.T, open Open) {
	for _, group := range []struct {
		name string
		run  func(t *testing.T, open Open)
	}{
		{"Consume", consumeTests},
		{"Close", closeTests},
		{"Begin", beginTests},
		{"Finish", finishTests},
		{"Propose", proposeTests},
		{"Inbox", inboxTests},
		{"Line", lineTests},
		{"Life", lifeTests},
		{"Phones", phoneTests},
		{"Events", eventTests},
		{"Accounts", accountTests},
		{"People", peopleTests},
		{"Pairing", pairingTests},
		{"KeptAccounts", keptAccountTests},
		{"Pages", pageTests},
		{"Readings", readingTests},
		{"Races", raceTests},
		{"Runs", runTests},
		{"Cited", citedTests},
		{"Contacts", contactTests},
		{"Said", saidTests},
	} {
		t.Run(group.name, func(t *testing.T) { group.run(t, open) })
	}
}

// RunPath runs what the suite demands of storing a message and of the yes.
func RunPath(t *testing.T, open Open) {
	t.Run("Consume", func(t *testing.T) { consumeTests(t, open) })
	t.Run("Inbox", func(t *testing.T) { inboxTests(t, open) })
}
