package main

// saidCmd is what people typed as permissions.
type saidCmd struct {
	List    saidList       `cmd:"" help:"List what people let happen without a question."`
	Revoke  saidRevoke     `cmd:"" help:"End a permission."`
	Grant   saidGrant      `cmd:"" help:"Give a standing permission to exact addresses."`
	Unquote saidUnquoteCmd `cmd:"" help:"Show what is left of a text once what was pasted or quoted is out."`
	Eval    saidEvalCmd    `cmd:"" help:"Measure how asks are read: with fakes, the built-in extractor, or a model."`
}
