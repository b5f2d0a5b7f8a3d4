// Package ui renders the operators' pages: what the command line shows and does, for a browser, complete without
// JavaScript.
//
// A page makes calls of internal/opsapi and nothing else, so that it knows what a command knows, and its parameters are
// those of the calls. A GET shows; a POST acts, and redirects to the page that shows what came of it. Every text of a
// document, an error or a person goes through html/template. The package knows neither the host's envelope nor who may
// sign in (handlers).
//
// A new page is a row of pages (site.go), a file with its function, and a template of the same name.
package ui
