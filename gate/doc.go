// Package gate decides whether something that an agent wants to do may run.
//
// [Decide] is one pure function: an [Operation], what the server knows of its
// run ([Turn]) and the [Policy] go in, a [Decision] comes out. It reads no clock
// and no store, so that every answer can be a row in a table; the tables are in
// testdata. Nothing runs that it did not allow or a person did not approve.
//
// # Rules
//
// They are tried in this order, and the first that speaks decides.
//
//	1   the kind is known, the arguments are one JSON object without a
//	    confirmation parameter at any depth, and they fit the tool's schema
//	2   the run's tier is there, is known, and holds the capability
//	2b  a text to the run's own person at a bound address, a model call, memory
//	    read and source append: allowed
//	3   the floor: what sends outside, publishes, pays, shares, deletes, invites
//	    from outside, acts outside, goes on acting outside, or is unknown is
//	    asked. Two ways lead through it, neither in a tainted run, and neither
//	    for a deletion or an unknown tool: a send to none but direct-send and own
//	    addresses, and a said intent where the account lets asking be approving
//	4   in a tainted run whatever leaves the account is asked
//	5   the policy wants a preview, and no standing permission covers the call
//	6   what can be undone and touches only the person's own data is allowed; a
//	    send to nobody but own addresses is such a thing
//	7   anything else is asked
//
// What came in by the one-call way to make an offer is asked where it would be
// allowed. Where an ask can reach nobody it becomes a refusal.
//
// # Reasons
//
//	MODEL_CONFIRM_PARAMETER      refuse  1   a parameter claims that somebody confirmed
//	ARGS_INVALID                 refuse  1   the arguments cannot be read or do not fit the schema
//	KIND_UNKNOWN                 refuse  1   the kind of operation is none of the five
//	PERMISSION_GRANT_RESERVED    refuse  1   an agent asks for a permission, which only the person's own words can
//	AUTHORITY_TIER_MISSING       refuse  2   the run carries no tier
//	AUTHORITY_TIER_UNKNOWN       refuse  2   the run's tier is not in the table
//	AUTHORITY_CAPABILITY_DENIED  refuse  2   the tier does not hold the capability
//	REPLY_ALLOWED                allow   2b  a text to the run's own person
//	MODEL_CALL_ALLOWED           allow   2b  a call of a model
//	MEMORY_ALLOWED               allow   2b  a look into memory, or a source appended to it
//	FLOOR_UNKNOWN_TOOL           ask     3   the policy does not know the tool
//	FLOOR_DELETES                ask     3   it deletes
//	FLOOR_STANDING_RULE          ask     3   it sets up something that goes on acting outside
//	FLOOR_PAYS                   ask     3   it pays
//	FLOOR_SHARES                 ask     3   it gives others access
//	FLOOR_POSTS                  ask     3   it publishes
//	FLOOR_ACTS_OUTSIDE           ask     3   it does something else outside the account
//	FLOOR_SEND_OUTSIDE           ask     3   a recipient is not an own address, or not exactly one plain address
//	FLOOR_INVITES_OUTSIDE        ask     3   a guest is not an own address, or not exactly one plain address
//	DIRECT_SEND                  allow   3   every recipient is on the person's direct-send list
//	SAID_INTENT                  allow   3   the person asked for this very call in their own words
//	TAINTED_OUTWARD              ask     4   it leaves the account, in a run that read a stranger's words
//	POLICY_PREVIEW               ask     5   the policy wants it shown first
//	REVERSIBLE_OWN_DATA          allow   6   it can be undone and touches only the person's own data
//	SHORT_FORM_ASKS              ask     7   it would be allowed, but came in as an offer
//	DEFAULT_ASK                  ask     7   nothing allows it
//	NO_INTERACTIVE_PATH          refuse  *   the rule that decided asks, and the run can reach nobody
//
// # The policy file
//
// YAML, version 1, with one entry a tool. [ParsePolicy] takes nothing that it
// does not know and names file and line of every fault.
//
//	version: 1
//	tools:
//	  email.send:
//	    description: Send an email.        # for the model
//	    effect: send                       # read write send post pay share delete invite schedule act
//	    outward: true                      # schedule: what it sets up acts outside; read: can be seen outside
//	    capability: network.send           # what the run's tier must hold
//	    recipients: [to, cc]               # paths of arguments; arrays on the way are walked through
//	    amount: {value: a, currency: c}    # of a tool that pays
//	    label: {verb: send email, to: recipients, word: to}
//	    reads: untrusted                   # the run is tainted once this was allowed
//	    preview: true                      # rule 5
//	    own: true                          # rule 6, both of them
//	    reversible: true
//	    settle: 5s                         # how long a yes can be taken back, at most 5m
//	    expires: 10m                       # life of an offer; outward at most 10m, else 24h
//	    said: {kind: send, channel: email} # how a typed request speaks of it
//	    schema: {…}                        # JSON Schema of an object, without $ref, anyOf and the like
//	    template:                          # a line for every argument
//	      - {prefix: To, arg: to}
//	      - {prefix: Text, arg: body, body: true}  # may be linked where it is long
//
// A tool that acts outward or deletes, and one with a template, says
// additionalProperties: false for every object of its schema: an argument that
// nobody was shown is one that nobody approved.
package gate
