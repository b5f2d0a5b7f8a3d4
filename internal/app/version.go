package app

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"sqlwriter/internal/invoice"
)

// stamp is the output of git describe for the source of this binary. cmd/stage/staging sets it by the linker.
// It is empty without git, and with a plain go build.
var stamp string //nolint:gochecknoglobals // the linker can set nothing else

// content returns a hash of the running binary. It is read once, and only if the stamp does not identify the build.
var content = sync.OnceValue(func() string { return contentOf(os.Executable()) }) //nolint:gochecknoglobals // it never changes

const (
	// unknown is the version of a binary without a stamp that cannot be read.
	unknown = "(devel)"
	// hashDigits is the number of hexadecimal digits of a hash in a name: 48 bits, enough for a few builds.
	hashDigits = 12
	// maxBuild is the greatest length of Build, in characters.
	maxBuild = 64
)

// Version returns the name of this binary. For a clean commit it is the stamp. With uncommitted changes a hash of the
// binary follows. Without a stamp it is the hash alone, as in "sha256:0123456789ab". The same binary has the same name
// everywhere, and two binaries of different sources never share a name.
func Version() string { return version(stamp, content) }

func version(stamp string, content func() string) string {
	switch {
	case stamp == "":
		return content()
	case strings.HasSuffix(stamp, "-dirty"): // two builds of one work tree may differ
		return stamp + "+" + strings.TrimPrefix(content(), "sha256:")
	}
	return stamp
}

// Build returns the name under which the control document records that this build has applied documents: the version,
// and that of the mapping unless it is the default; at most 64 characters. The mapping decides what a build writes, as
// its code does.
func Build(m *invoice.Mapping) string { return build(Version(), m) }

func build(version string, m *invoice.Mapping) string {
	name := version
	if m.Version() != invoice.DefaultMapping().Version() {
		name += "+" + strconv.Itoa(m.Version())
	}
	if len(name) > maxBuild { // a long tag: the hash distinguishes names that are cut off
		name = name[:maxBuild-hashDigits-1] + "+" + digits([]byte(name))
	}
	return name
}

func digits(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:hashDigits]
}

// contentOf returns a hash of a file. It takes the results of os.Executable.
func contentOf(path string, err error) string {
	if err != nil {
		return unknown
	}
	file, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer func() { _ = file.Close() }() // the file was only read
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return unknown
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))[:hashDigits]
}
