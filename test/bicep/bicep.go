// Package bicep holds the templates of the repository to the vendor's types, and to what the app needs. Python reads them
// (check.py, evaluate.py); `make bicep` installs it.
package bicep

import (
	_ "embed"
	"encoding/json"
)

//go:embed testdata/settings.json
var settings []byte

// Settings are the app settings that deploy/azure/main.bicep gives to an app with an account and a server of its own. A
// test keeps them true. Ids and names that Azure makes up are stand-ins.
func Settings() (map[string]string, error) {
	var values map[string]string
	err := json.Unmarshal(settings, &values)
	return values, err
}
