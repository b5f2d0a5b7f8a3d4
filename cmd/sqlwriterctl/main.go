// Command sqlwriterctl is the operators' command-line tool. It submits and shows documents, lists the columns, controls the
// flow and runs, migrates this app's own tables, and adopts a database that another program has written to.
//
// Exit codes: 0 done, 1 not found or failed, 2 wrong usage.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/timer"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

type cli struct {
	Cosmos    string `help:"Cosmos DB connection string." placeholder:"CONNECTION"`
	Database  string `help:"Cosmos DB database." placeholder:"NAME"`
	Container string `help:"Container of the results." placeholder:"NAME"`
	SQL       string `name:"sql" help:"SQL database: sqlserver://... or sqlite:PATH." placeholder:"CONNECTION"`
	Schema    string `help:"Schema of the user's tables on SQL Server (dbo)." placeholder:"NAME"`
	Names     string `name:"column-names" help:"File of this deployment's column names." placeholder:"FILE"`

	Submit  submitCommand  `cmd:"" help:"Submit documents to the container, as the API does."`
	Show    showCommand    `cmd:"" help:"Show a document's state, and the SQL rows and ledger rows of its lines."`
	Columns columnsCommand `cmd:"" help:"List the columns that a document is written to."`
	Explain explainCommand `cmd:"" help:"Explain an error code: its meaning, its cost and what happens next."`

	Status        statusCommand        `cmd:"" help:"Show the state of the flow, and how many documents wait or have failed."`
	Why           whyCommand           `cmd:"" help:"Explain a document's status, and what happens next."`
	Pause         pauseCommand         `cmd:"" help:"Stop the flow: nothing is sent to SQL, and documents wait."`
	Resume        resumeCommand        `cmd:"" help:"Start the flow again, after a pause or an outage."`
	MarkCommitted markCommittedCommand `cmd:"" help:"Mark a document as committed after its lines were repaired by hand."`
	Audits        auditsCommand        `cmd:"" help:"List the actions of operators, with their reasons."`

	RunGroup runCommands   `cmd:"" name:"run" help:"Runs over many documents: drain, replay, reindex."`
	Batch    batchCommands `cmd:"" help:"The batches of runs."`
	Report   reportCommand `cmd:"" help:"Run a monitoring query; without a name, list them."`

	Migrate migrateCommand `cmd:"" help:"Migrate this app's own tables, or show what is pending."`
	Ledger  ledgerCommand  `cmd:"" help:"Adopt a database that another program has written to."`
}

// environment holds the process's inputs and outputs. Tests replace it.
type environment struct {
	lookup func(string) (string, bool)
	// dir is the folder of .local and local.settings.json.
	dir            string
	stdin          io.Reader
	stdout, stderr io.Writer
	// terminal means that stderr is a terminal: progress is then one line that is redrawn.
	terminal bool
	// now is the clock. wait sleeps unless the context ends first. Nil means the real ones.
	now  func() time.Time
	wait func(ctx context.Context, d time.Duration) error
}

func (e environment) clock() func() time.Time {
	if e.now != nil {
		return e.now
	}
	return time.Now
}

func (e environment) pause() func(context.Context, time.Duration) error {
	if e.wait != nil {
		return e.wait
	}
	return timer.Wait
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// app is the argument of every command.
type app struct {
	environment
	flags flags
	// command is the command that the operator typed.
	command *kong.Node
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], environment{lookup: os.LookupEnv, dir: ".", stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, terminal: isTerminal(os.Stderr)})
	stop()
	os.Exit(code)
}

// execute parses and runs one command, and returns the exit code.
func execute(ctx context.Context, args []string, env environment) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("sqlwriterctl"), kong.Description(
		"Connections come from flags, else the environment, else a running `make run` (.local/stack.json), else local.settings.json. "+
			"Each of the last three is used as a whole, and stderr names it. The operators' commands (status to report) use an app's "+
			"Ops function instead if --app or SQLWRITER_APP names an app."),
		kong.Vars{"kinds": kindsHelp()}, kong.Writers(env.stdout, env.stderr), kong.Exit(func(code int) { exited = code }))
	if err != nil {
		env.notef("sqlwriterctl: %v", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		env.notef("sqlwriterctl: %v (see sqlwriterctl --help)", err)
		return exitUsage
	}
	a := &app{environment: env, command: parsed.Selected(), flags: flags{
		cosmos: c.Cosmos, database: c.Database, container: c.Container, sql: c.SQL, schema: c.Schema, names: c.Names,
	}}
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(a); err != nil {
		env.notef("sqlwriterctl: %v", err)
		if isUsage(err) {
			return exitUsage
		}
		return exitFailed
	}
	return exitOK
}

// printf writes a line of the result to stdout, notef a note to stderr. Both ignore a closed output.
func (e environment) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(e.stdout, format+"\n", args...)
}

func (e environment) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(e.stderr, format+"\n", args...)
}

// table writes rows in aligned columns.
func (e environment) table(rows [][]string) error {
	w := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// usageError is a mistake in the command line.
type usageError struct{ error }

// isGone reports whether a document does not exist.
func isGone(err error) bool { return fault.Has(err, fault.Gone) }
