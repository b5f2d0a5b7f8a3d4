// Package scripts has the rights that `sqlwriterctl migrate` gives and those that it needs. The scripts of this folder
// are the only list of both.
package scripts

import _ "embed" // the scripts

// AppRights gives the app's user, sqlwriter_app, what it needs.
//
//go:embed app_rights.sql
var AppRights string

// MigrationRights is for who migrates.
//
//go:embed migration_rights.sql
var MigrationRights string

// SetupRights is what who also makes the app's user needs beside MigrationRights.
//
//go:embed setup_rights.sql
var SetupRights string
