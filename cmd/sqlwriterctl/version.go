package main

import (
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// shownVersion identifies this build.
type shownVersion struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints the version. It needs no connection.
func (c *versionCommand) Run(a *app) error {
	v := shownVersion{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	commit := orDash(v.Commit)
	if v.Modified {
		commit += ", with changes"
	}
	return a.emit(v, []string{v.Version}, func() error {
		return a.facts([][]string{{"version", v.Version}, {"commit", commit}, {"go", v.Go}, {"platform", v.Platform}})
	})
}
