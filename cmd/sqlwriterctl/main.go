// Command sqlwriterctl is the operators' command-line tool. It shows the state of the app and of documents, controls
// the flow and runs, submits documents, migrates this app's own tables, and adopts a database that another program has
// written to.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitAttention: `status --check`, `doctor` or `column check` found something that a person must look at, or a comparison has
	// open findings.
	exitAttention = 3
	// exitInterrupted is what shells expect after Ctrl-C.
	exitInterrupted = 130
)

const exitCodes = "Exit codes: 0 done; 1 failed, refused or not found; 2 wrong usage; 3 something needs attention (status --check, doctor, finding list, column check, the end of a comparison); 130 interrupted."

const whereFrom = "Commands ask the app: that of --app, else of SQLWRITER_APP, else of the running local stack. An app in Azure is given by its name: " +
	"the user of az login gets in. By its address it is opened with SQLWRITER_KEY, a function key of Ops, or with SQLWRITER_AUDIENCE, as the user of az login. " +
	"Commands that are needed before an app runs (document submit, ledger, migrate, column) open SQL and Cosmos DB by themselves, with the app settings of " +
	"--settings, else of --app NAME, else of the environment, else of SQLWRITER_APP=NAME, else of the running local stack."

// globals are the flags of every command.
type globals struct {
	Output  string `short:"o" enum:"table,json" default:"table" help:"Format of the result: table or json." placeholder:"FORMAT" group:"Global flags"`
	Quiet   bool   `short:"q" help:"Print ids or names only, one a line, and no notes." group:"Global flags"`
	UTC     bool   `name:"utc" help:"Show times in UTC instead of local time. JSON always has RFC 3339." group:"Global flags"`
	Verbose bool   `help:"Print the details of errors." group:"Global flags"`

	App      string `help:"The app: its name in Azure, or its address (SQLWRITER_APP)." placeholder:"NAME" group:"Connection"`
	Settings string `help:"A file of app settings, in the form of local.settings.json, for the commands that open SQL or Cosmos DB by themselves." placeholder:"FILE" group:"Connection"`
}

type cli struct {
	globals

	Status   statusCommand    `cmd:"" help:"Show what needs attention, the flow, dependencies, runs and counts."`
	Doctor   doctorCommand    `cmd:"" help:"Look at a deployment, in the order in which things depend on each other: what is wrong, the cause, and one command for each. Exit code 1 if something is wrong, 3 if it is not yet there or could not be looked at."`
	Explain  explainCommand   `cmd:"" help:"Explain an error code: meaning, cost, what happens next, what to do."`
	Document documentCommands `cmd:"" help:"Documents: find them, explain them, try them again."`
	Flow     flowCommands     `cmd:"" help:"The flow of documents to SQL: pause, resume."`
	Run      runCommands      `cmd:"" help:"Runs over many documents: drain, replay, reindex, reapply."`
	Batch    batchCommands    `cmd:"" help:"The batches of runs."`
	Finding  findingCommands  `cmd:"" help:"What comparisons of documents and rows found: list, compare."`
	Line     lineCommands     `cmd:"" help:"Single lines: give one to the document that names it."`
	Evidence evidenceCommands `cmd:"" help:"The evidence of poison messages: show, get, put a deleted document back."`
	Audit    auditCommands    `cmd:"" help:"Who did what, and why."`
	Report   reportCommands   `cmd:"" help:"Monitoring queries."`

	Ledger  ledgerCommands  `cmd:"" help:"Adopt a database that another program has written to."`
	Migrate migrateCommands `cmd:"" help:"This app's own tables and procedures."`
	Column  columnCommands  `cmd:"" help:"The columns that documents are written to."`

	Completion completionCommand `cmd:"" help:"Print the completion script of a shell."`
	Version    versionCommand    `cmd:"" help:"Print version, commit, Go and platform."`
}

// app is the argument of every command.
type app struct {
	environment
	globals
	// parser is the tool's grammar, command the command that the operator typed.
	parser  *kong.Kong
	command *kong.Node
	// asked is the app that the command asks, caller the way to it; nil before the first call.
	asked  target
	caller opsapi.Caller
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], processEnvironment())
	stop()
	os.Exit(code)
}

// execute parses and runs one command, and returns the exit code.
func execute(ctx context.Context, args []string, env environment) int {
	a := &app{environment: env}
	var c cli
	exited := -1
	parser, err := newParser(&c, env, func(code int) { exited = code })
	if err != nil {
		return a.fail(ctx, err)
	}
	a.parser = parser
	if len(args) > 0 && args[0] == completeWord {
		a.complete(args[1:])
		return exitOK
	}
	parsed, err := parser.Parse(args)
	a.globals = c.globals
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		a.command = typed(err)
		return a.fail(ctx, usagef("%w", err))
	}
	a.command = parsed.Selected()
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(a); err != nil {
		return a.fail(ctx, err)
	}
	return exitOK
}

// newParser makes the grammar. exit is called after --help.
func newParser(c *cli, env environment, exit func(int)) (*kong.Kong, error) {
	parser, err := kong.New(c, kong.Name("sqlwriterctl"), kong.Description(
		"The operators' tool of the SQL Writer.\n\n"+
			whereFrom+"\n\n"+exitCodes),
		kong.Vars{
			"kinds":      kindsHelp(),
			"kind_names": strings.Join(idsOf(run.Kinds(), func(k run.KindRow) string { return string(k.Kind) }), ","),
		}, kong.Writers(env.stdout, env.stderr), kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, FlagsLast: true}))
	if err != nil {
		return nil, err
	}
	return parser, addExamples(parser.Model.Node)
}

// child returns the command of a node with a name; nil if there is none.
func child(node *kong.Node, name string) *kong.Node {
	for _, c := range node.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// typed returns the command, or group of commands, in which an error of the parser is.
func typed(err error) *kong.Node {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return nil
	}
	for i := len(parse.Context.Path) - 1; i >= 0; i-- {
		if node := parse.Context.Path[i].Node(); node != nil {
			return node
		}
	}
	return nil
}

// commandPath is the words of a command without those of its arguments.
func commandPath(node *kong.Node) string {
	var words []string
	for ; node != nil; node = node.Parent {
		words = append([]string{node.Name}, words...)
	}
	return strings.Join(words, " ")
}
