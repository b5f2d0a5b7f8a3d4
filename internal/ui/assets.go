package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"strings"
)

//go:embed templates static
var files embed.FS //nolint:gochecknoglobals // files

// asset is a file that every page uses.
type asset struct{ contentType, body string }

// loadAssets names each asset by its content's hash, so that a browser may keep it for ever.
func (s *Site) loadAssets() {
	s.assets = map[string]asset{}
	add := func(file, contentType string) string {
		content, err := files.ReadFile("static/" + file)
		if err != nil {
			panic("ui: " + err.Error()) // impossible: it is embedded
		}
		const digits = 12
		sum := sha256.Sum256(content)
		extension := path.Ext(file)
		name := strings.TrimSuffix(file, extension) + "-" + hex.EncodeToString(sum[:])[:digits] + extension
		s.assets[name] = asset{contentType, string(content)}
		return "assets/" + name
	}
	s.style = add("style.css", "text/css; charset=utf-8")
	s.script = add("script.js", "text/javascript; charset=utf-8")
}

// asset answers with a file. Another build's file does not exist here.
func (s *Site) asset(name string) Answer {
	a, there := s.assets[name]
	if !there {
		h := headers("text/plain; charset=utf-8")
		return Answer{Status: http.StatusNotFound, Headers: h, Body: "no such file in this build"}
	}
	h := headers(a.contentType)
	h["Cache-Control"] = "public, max-age=31536000, immutable"
	return Answer{Status: http.StatusOK, Headers: h, Body: a.body}
}

// parse reads the template of each page, with the layout and the parts.
func (s *Site) parse() map[string]*template.Template {
	all := map[string]*template.Template{}
	names := []string{"problem"}
	for _, p := range s.pages {
		names = append(names, p.template())
	}
	for _, name := range names {
		all[name] = template.Must(
			template.New(name).Funcs(s.functions()).ParseFS(files, "templates/layout.html", "templates/parts.html",
				"templates/"+name+".html"))
	}
	return all
}
