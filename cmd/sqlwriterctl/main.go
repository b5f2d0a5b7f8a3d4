// Command sqlwriterctl is the operator's hand: it puts a document in, shows what became of one, lists the columns, brings
// our own tables up to date, and adopts a database that somebody else has written to.
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

// Exit codes.
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

	Submit  submitCommand  `cmd:"" help:"Put documents into the container, as the API does."`
	Show    showCommand    `cmd:"" help:"Show a document's state beside the SQL rows and the ledger of its lines."`
	Columns columnsCommand `cmd:"" help:"List the columns that a document is written to."`
	Explain explainCommand `cmd:"" help:"Say what an error's code means, what it costs and what happens next."`

	Status        statusCommand        `cmd:"" help:"Show what the flow does, and how much waits and has failed."`
	Why           whyCommand           `cmd:"" help:"Say why a document is where it is, and what happens next."`
	Reprocess     reprocessCommand     `cmd:"" help:"Try failed documents again."`
	Pause         pauseCommand         `cmd:"" help:"Stop the flow: nothing is sent to SQL, documents wait."`
	Resume        resumeCommand        `cmd:"" help:"Let work pass again, whatever stopped it."`
	MarkCommitted markCommittedCommand `cmd:"" help:"Take a document for committed whose lines were repaired by hand."`
	Audits        auditsCommand        `cmd:"" help:"List who did what, and why."`

	RunGroup runCommands   `cmd:"" name:"run" help:"Long work: drain, replay and reindex, which many workers do over Service Bus, and reprocess, which one process does."`
	Batch    batchCommands `cmd:"" help:"The batches of runs."`
	Report   reportCommand `cmd:"" help:"Run a monitoring query; without a name, list them."`

	Migrate migrateCommand `cmd:"" help:"Bring our own tables up to date, or see what that would do."`
	Ledger  ledgerCommand  `cmd:"" help:"Adopt a database that somebody else has written to."`
}

// environment is everything outside that a run looks at; tests bring their own.
type environment struct {
	lookup func(string) (string, bool)
	// dir is where .local and local.settings.json are looked for.
	dir            string
	stdin          io.Reader
	stdout, stderr io.Writer
	// terminal says that somebody looks at stderr: progress is then one line that is drawn again.
	terminal bool
	// now is the clock, wait sleeps unless the context ends first. Nil stands for the real ones.
	now  func() time.Time
	wait func(ctx context.Context, d time.Duration) error
}

// clock is the time, pause a wait that the end of the context ends.
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

// isTerminal reports whether somebody looks at what is written to a file.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// app is what commands get.
type app struct {
	environment
	flags flags
	// command is the one that was typed.
	command *kong.Node
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], environment{lookup: os.LookupEnv, dir: ".", stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, terminal: isTerminal(os.Stderr)})
	stop()
	os.Exit(code)
}

// execute parses and runs one command and answers the exit code.
func execute(ctx context.Context, args []string, env environment) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("sqlwriterctl"), kong.Description(
		"Connections come from flags, else the environment, else a running `make run` (.local/stack.json), else local.settings.json. "+
			"One of the last three is taken whole, and stderr says which. What operators ask and do (status to report) goes by an app's "+
			"Ops function instead when --app or SQLWRITER_APP names one."),
		kong.Writers(env.stdout, env.stderr), kong.Exit(func(code int) { exited = code }))
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

// printf writes a line of the answer, notef a line about it. Whoever closed the output early wants no more of it.
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

// usageError is an error of whoever typed the command.
type usageError struct{ error }

// isGone says whether a document is not there.
func isGone(err error) bool { return fault.Has(err, fault.Gone) }
