package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
)

// database opens the database of the settings, past the firewall of Azure SQL.
func (a *app) database(ctx context.Context, s settings) (db *open.Database, err error) {
	err = a.pastFirewall(ctx, func() error {
		db, err = s.database(ctx)
		return err
	})
	return db, err
}

// codeFirewall is the server's number when its firewall refuses an address. The server's words name both.
const codeFirewall = "40615"

var refusedAddress = regexp.MustCompile(`server '([\w-]+)' requested by the login\. Client with IP address '([\w.:]+)'`)

// A new rule of the firewall may take five minutes.
const (
	ruleTakes = 5 * time.Minute
	ruleEvery = 10 * time.Second
)

// pastFirewall connects. Where the firewall refuses this machine's address, it asks once, adds that address and
// connects again. Without a terminal it says how.
func (a *app) pastFirewall(ctx context.Context, connect func() error) error {
	err := connect()
	if fault.CodeOf(err) != codeFirewall {
		return err
	}
	found := refusedAddress.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	server, address := found[1], found[2]
	group, failed := azText(ctx, "sql", "server", "list", "--query", "[?name=='"+server+"'].resourceGroup", "-o", "tsv")
	known := failed == nil && group != ""
	if !known {
		group = "GROUP"
	}
	rule := []string{"-g", group, "-s", server, "-n", "sqlwriterctl-" + notInNames.ReplaceAllLiteralString(address, "-")}
	create := append(append([]string{"sql", "server", "firewall-rule", "create"}, rule...),
		"--start-ip-address", address, "--end-ip-address", address, "-o", "none")
	if !a.asks || !known {
		return advised(err, "`az %s` lets this machine in", strings.Join(create, " "))
	}
	if err := a.confirm(false, fmt.Sprintf("The firewall of %s refuses this machine. Add its address %s?", server, address)); err != nil {
		return err
	}
	if _, err := azText(ctx, create...); err != nil {
		return err
	}
	a.tellf("the firewall of %s has a rule for %s; this takes it back: az sql server firewall-rule delete %s",
		server, address, strings.Join(rule, " "))
	for waited := time.Duration(0); ; waited += ruleEvery {
		if err = connect(); fault.CodeOf(err) != codeFirewall || waited >= ruleTakes {
			return err
		}
		if err := a.wait(ctx, ruleEvery); err != nil {
			return err
		}
	}
}

var notInNames = regexp.MustCompile(`\W`)

// azText runs the Azure CLI, and returns what it prints.
func azText(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "az", args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("az %s: %s", strings.Join(args, " "), oneLine(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
