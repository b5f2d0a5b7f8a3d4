package staging

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// Stamp is the variable of the handler that holds its version. The linker sets it, and says nothing when no variable has
// this name; so the tests of internal/app build with it.
const Stamp = "sqlwriter/internal/app.stamp"

// ErrUnnamed says that git has no name for the source. The error that wraps it says what git answered.
var ErrUnnamed = errors.New("this build would have no version: publish from a git clone with at least one commit, and with git on the PATH")

// dirty ends the version of a source that differs from its commit.
const dirty = "-dirty"

// version is what git describe says of the source: tag, commits since, commit. The commit is always there and always of one
// length: a tag can be moved, and two clones would shorten a commit differently. Errors: ErrUnnamed.
func version(ctx context.Context, source string) (string, error) {
	// An archive that was unpacked within somebody else's work tree has no name; that tree's is not its own.
	if _, err := git(ctx, source, "ls-files", "--error-unmatch", "go.mod"); err != nil {
		return "", err
	}
	name, err := git(ctx, source, "describe", "--tags", "--always", "--long", "--abbrev=12", "--dirty="+dirty)
	if err != nil {
		return "", err
	}
	// git describe does not look at new files; the compiler takes them.
	fresh, err := git(ctx, source, "ls-files", "--others", "--exclude-standard", "--", "cmd/handler", "handlers", "internal")
	if err != nil {
		return "", err
	}
	if fresh != "" && !strings.HasSuffix(name, dirty) {
		name += dirty
	}
	// A tag may hold what the linker's flags and the control document have another use for.
	return regexp.MustCompile(`[^A-Za-z0-9._+-]`).ReplaceAllString(name, "-"), nil
}

// git answers what git prints about the source. Errors: ErrUnnamed.
func git(ctx context.Context, source string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = source
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("%w (git %s: %w)", ErrUnnamed, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
