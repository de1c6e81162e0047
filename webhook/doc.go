// Package webhook is the provider's side of the door: it takes what a
// provider posts, proves where it came from, gives it its shape and hands it
// to the Intake, which stores it. Only then is the provider told 200.
//
// There are two handlers. [NewTwilioHandler] speaks Twilio's wire format and believes
// nothing that is not signed. [NewSimHandler] is the simulated phone: JSON, from
// this machine only, with addresses that no real channel can have.
//
// Nothing here reads a reply, knows a person or decides anything about an
// offer. A message that passes is evidence of what was sent, no more.
package webhook
