package main

import (
	"runtime"
	"runtime/debug"
)

// version and revision are set by the linker (make ctl). They are empty without git.
//
//nolint:gochecknoglobals // the linker can set nothing else
var version, revision string

type versionCommand struct{}

// shownVersion identifies this build.
type shownVersion struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints the version. It needs no connection.
func (c *versionCommand) Run(a *app) error {
	v := shownVersion{
		Version: version, Commit: revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok && v.Version == "" {
		v.Version = info.Main.Version
	}
	return a.emit(v, []string{v.Version}, func() error {
		return a.table(
			[][]string{{"version", v.Version}, {"commit", orDash(v.Commit)}, {"go", v.Go}, {"platform", v.Platform}})
	})
}
