package app

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"sync"
)

// stamp is what git says of the source that this binary was built from; cmd/stage/staging lets the linker set it. Empty where
// there was no git, and with a plain go build.
var stamp string //nolint:gochecknoglobals // the linker can set nothing else

// content names the running binary by its content. It is read once, and only by a build that its stamp does not tell apart.
var content = sync.OnceValue(func() string { return contentOf(os.Executable()) }) //nolint:gochecknoglobals // it never changes

const (
	// unknown is the version of a binary that has no stamp and cannot be read.
	unknown = "(devel)"
	// hashDigits are the hexadecimal digits of a hash in a name: 48 bits, for a handful of builds at a time.
	hashDigits = 12
	// maxBuild is the most characters of Build.
	maxBuild = 64
)

// Version is the name of this binary: the stamp of a commit; for changes that are in no commit the stamp and a hash of the
// binary; without a stamp that hash alone, as in "sha256:0123456789ab". The same binary has the same name everywhere, and two
// that were built from different sources never share one.
func Version() string { return version(stamp, content) }

func version(stamp string, content func() string) string {
	switch {
	case stamp == "":
		return content()
	case strings.HasSuffix(stamp, "-dirty"): // who deploys twice from one work tree has deployed two builds
		return stamp + "+" + strings.TrimPrefix(content(), "sha256:")
	}
	return stamp
}

// Build is the name under which the control document keeps what this build has applied: the version and a hash of the file
// of COLUMN_NAMES, nil when there is none; at most 64 characters. Proof is per build and settings file: what another build
// could write says nothing about this one, and the layout decides what a build writes as much as its code does.
func Build(layoutFile []byte) string { return build(Version(), layoutFile) }

func build(version string, layoutFile []byte) string {
	name := version
	if len(layoutFile) > 0 {
		name += "+" + digits(layoutFile)
	}
	if len(name) > maxBuild { // a long tag: the hash keeps apart what is cut off
		name = name[:maxBuild-hashDigits-1] + "+" + digits([]byte(name))
	}
	return name
}

func digits(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:hashDigits]
}

// contentOf names a file by its content; it takes what os.Executable answers.
func contentOf(path string, err error) string {
	if err != nil {
		return unknown
	}
	file, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer func() { _ = file.Close() }() // it was only read
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return unknown
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))[:hashDigits]
}
