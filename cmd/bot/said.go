package main

// saidCmd is what people typed as permissions.
type saidCmd struct {
	Unquote saidUnquoteCmd `cmd:"" help:"Show what is left of a text once what was pasted or quoted is out."`
}
