package staging

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// Stamp is the variable of the handler that holds its version. The linker sets it, and reports no error if no variable
// has this name. So a test of internal/app builds with it.
const Stamp = "sqlwriter/internal/app.stamp"

// ErrUnnamed means that git has no version for the source. The error that wraps it contains the output of git.
var ErrUnnamed = errors.New(
	"this build would have no version: publish from a git clone with at least one commit, and with git on the PATH")

// dirty is the suffix of the version of a source with uncommitted changes.
const dirty = "-dirty"

// version returns the output of git describe: tag, commits since, commit. The commit is always part of it, because a
// tag can be moved. It has a fixed length, because two clones may shorten a commit differently. Errors: ErrUnnamed.
func version(ctx context.Context, source string) (string, error) {
	// An archive that is unpacked inside another work tree must not get the version of that tree.
	if _, err := git(ctx, source, "ls-files", "--error-unmatch", "go.mod"); err != nil {
		return "", err
	}
	name, err := git(ctx, source, "describe", "--tags", "--always", "--long", "--abbrev=12", "--dirty="+dirty)
	if err != nil {
		return "", err
	}
	// git describe ignores new files, but the compiler uses them.
	fresh, err := git(ctx, source, "ls-files", "--others", "--exclude-standard", "--",
		"cmd/handler", "handlers", "internal")
	if err != nil {
		return "", err
	}
	if fresh != "" && !strings.HasSuffix(name, dirty) {
		name += dirty
	}
	// A tag may contain characters with a meaning in the linker's flags or in the control document.
	return regexp.MustCompile(`[^A-Za-z0-9._+-]`).ReplaceAllString(name, "-"), nil
}

// git returns the output of a git command in the source folder. Errors: ErrUnnamed.
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
