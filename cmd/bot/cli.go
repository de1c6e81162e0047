package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/people"
)

// Exit codes.
const (
	exitOK    = 0
	exitNo    = 1 // the answer is no
	exitUsage = 2 // wrong use
)

// version of the product; the build may set it.
var version = "0.1.0"

// cli is the command line.
type cli struct {
	Demo      demoCmd      `cmd:"" help:"Run everything on this machine: embedded database, built-in reader, simulated phone, sample agent."`
	Serve     serveCmd     `cmd:"" help:"Run the server."`
	Migrate   migrateCmd   `cmd:"" help:"Bring the database up to date, or say how far it is."`
	Keys      keysCmd      `cmd:"" help:"Make, list and revoke the keys of agents."`
	Accounts  accountsCmd  `cmd:"" help:"Add, list and change accounts."`
	People    peopleCmd    `cmd:"" help:"The people who are asked, and the strangers who would like to be."`
	Own       ownCmd       `cmd:"" help:"The account's own addresses: what goes there reaches nobody else."`
	Offers    offersCmd    `cmd:"" help:"List offers."`
	Endpoints endpointsCmd `cmd:"" help:"Post events to an agent's backend, and see to what did not arrive."`
	Classify  classifyCmd  `cmd:"" help:"Read replies and say what code would do."`
	Golive    goliveCmd    `cmd:"" help:"Ask a running server whether its gate holds, and prove that one yes releases one staged send once."`
	Said      saidCmd      `cmd:"" help:"What a person typed as a permission: the words that count, and how well they are read."`
	Calibrate calibrateCmd `cmd:"" help:"Show what a reader's probabilities are worth, bless it or refuse, and export replies for labelling."`
	Train     trainCmd     `cmd:"" help:"Train the built-in reader from its corpus."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

// env is what every command gets.
type env struct {
	ctx    context.Context //nolint:containedctx // one process, one command
	vars   map[string]string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	log    *slog.Logger
}

// usageError is wrong use, with a sentence that says what to do.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// noError is an answer of no that was already printed.
type noError struct{}

func (noError) Error() string { return "the answer is no" }

// exited carries the exit code out of kong, which wants to end the process for --help.
type exited int

// run is the whole program but for the process around it.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(exited); ok {
				code = int(e)
				return
			}
			panic(r)
		}
	}()
	e := &env{ctx: ctx, vars: variables(environ), stdin: stdin, stdout: stdout, stderr: stderr}
	e.log = slog.New(slog.NewJSONHandler(stderr, nil))
	var c cli
	parser, err := kong.New(&c, kong.Name("bot"), kong.Description("Approvals by text message for AI agents."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { panic(exited(code)) }), kong.Bind(e))
	if err != nil {
		fmt.Fprintln(stderr, "bot:", err)
		return exitUsage
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "bot: %v\nRun bot %s--help.\n", err, commandOf(args))
		return exitUsage
	}
	err = parsed.Run(e)
	var wrong *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, new(noError)):
		return exitNo
	case errors.As(err, &wrong), errors.Is(err, people.ErrBadAddress), errors.Is(err, people.ErrBadScope), errors.Is(err, people.ErrNoAccount),
		errors.Is(err, people.ErrBadCode), errors.Is(err, people.ErrBadSlug):
		fmt.Fprintln(stderr, "bot:", err)
		return exitUsage
	}
	fmt.Fprintln(stderr, "bot:", err)
	return exitNo
}

// commandOf repeats the words of a command, for a hint.
func commandOf(args []string) string {
	var words []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") || len(words) == 2 {
			break
		}
		words = append(words, a)
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, " ") + " "
}

func variables(environ []string) map[string]string {
	m := make(map[string]string, len(environ))
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return m
}

// printJSON writes one value on a line of its own. What a terminal would obey or not show is escaped: the value stays the
// same, and nobody's words can play tricks on whoever looks at the output.
func (e *env) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(e.stdout, escapeUnseen(strings.TrimSuffix(b.String(), "\n"))+"\n")
	return err
}

// escapeUnseen rewrites JSON so that every character which is not plainly seen is an escape. Such characters stand in
// strings alone.
func escapeUnseen(doc string) string {
	var b strings.Builder
	for _, r := range doc {
		switch {
		case r == ' ' || unicode.IsGraphic(r) && !unicode.In(r, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			b.WriteRune(r)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func (e *env) printf(format string, args ...any) { fmt.Fprintf(e.stdout, format, args...) }

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Help is the command's example.
func (versionCmd) Help() string { return "Example:\n  bot version --json" }

// Run prints the version.
func (c versionCmd) Run(e *env) error {
	if c.JSON {
		return e.printJSON(map[string]string{"version": version})
	}
	e.printf("bot %s\n", version)
	return nil
}
