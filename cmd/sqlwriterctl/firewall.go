package main

import (
	"cmp"
	"context"
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

// pastFirewall connects. Where the firewall refuses this machine's address, it asks once, adds that address and
// connects again: a new rule may take five minutes. Without a terminal it says how.
func (a *app) pastFirewall(ctx context.Context, connect func() error) error {
	const every, tries = 10 * time.Second, 30
	err := connect()
	found := refusedAddress.FindStringSubmatch(fmt.Sprint(err))
	if fault.CodeOf(err) != codeFirewall || found == nil {
		return err
	}
	server, address := found[1], found[2]
	group := a.azText(ctx, "sql", "server", "list", "--query", "[?name=='"+server+"'].resourceGroup", "-o", "tsv")
	rule := fmt.Sprintf("-g %s -s %s -n sqlwriterctl-%s", cmp.Or(group, "GROUP"), server,
		strings.NewReplacer(".", "-", ":", "-").Replace(address))
	create := fmt.Sprintf("sql server firewall-rule create %s --start-ip-address %s --end-ip-address %s -o tsv --query name",
		rule, address, address)
	question := fmt.Sprintf("The firewall of %s refuses this machine. Add its address %s?", server, address)
	if !a.asks || group == "" || a.confirm(false, question) != nil {
		return advised(err, "`az %s` lets this machine in", create)
	}
	if a.azText(ctx, strings.Fields(create)...) == "" {
		return advised(err, "az added no rule; `az %s` does it", create)
	}
	a.tellf("the firewall of %s has a rule for %s; this takes it back: az sql server firewall-rule delete %s",
		server, address, rule)
	for range tries {
		if err = connect(); fault.CodeOf(err) != codeFirewall {
			break
		}
		if err := a.wait(ctx, every); err != nil {
			return err
		}
	}
	return err
}

// azText runs the Azure CLI, and returns what it prints; nothing where it fails, which it says itself.
func (a *app) azText(ctx context.Context, args ...string) string {
	az := exec.CommandContext(ctx, "az", args...)
	az.Stderr = a.stderr
	out, err := az.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
