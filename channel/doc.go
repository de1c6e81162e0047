// Package channel carries texts to people: through Twilio's Messages API, or to
// the simulated phone. Both are an [offers.Sender].
//
// A send has three ends and the difference matters more than success: accepted
// means that the provider has the text, rejected means that nobody has seen it,
// unknown means that it may be on somebody's screen. Whatever is not proven
// otherwise is unknown, and what is unknown is never sent again from here.
package channel
