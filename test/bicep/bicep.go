// Package bicep holds the templates to the vendor's types, and to what the app needs. evaluate.py says what they
// deploy; `make bicep` installs its parser.
package bicep

import (
	_ "embed"
	"encoding/json"
	"strings"
)

// Deployment is what a parameter file deploys.
type Deployment struct {
	Resources []Resource     `json:"resources"`
	Outputs   map[string]any `json:"outputs"`
}

// Resource is what a template makes. ID begins with its scope. After has what must be there before, as it is written.
type Resource struct {
	Type  string         `json:"type"`
	Name  string         `json:"name"`
	ID    string         `json:"id"`
	After []string       `json:"after"`
	Body  map[string]any `json:"body"`
}

// own is the parameter file as a first deployment writes it.
const own = "test/bicep/testdata/own.bicepparam"

//go:embed testdata/deployed.json
var deployed []byte

// Deployed has what each parameter file deploys, by its path. A test keeps it true.
func Deployed() (map[string]Deployment, error) {
	var files map[string]Deployment
	err := json.Unmarshal(deployed, &files)
	return files, err
}

// Settings are the app settings that deploy/azure/main.bicep gives to an app with an account and a server of its own.
// Ids and names that Azure makes up are stand-ins.
func Settings() (map[string]string, error) {
	files, err := Deployed()
	return files[own].Settings(), err
}

// Settings are the app settings in a deployment.
func (d Deployment) Settings() map[string]string {
	values := map[string]string{}
	for _, made := range d.Of("Microsoft.Web/sites/config") {
		if strings.HasSuffix(made.Name, "/appsettings") {
			properties, _ := made.Body["properties"].(map[string]any)
			for name, value := range properties {
				values[name], _ = value.(string)
			}
		}
	}
	return values
}

// Of are the resources of a type.
func (d Deployment) Of(kind string) []Resource {
	var found []Resource
	for _, made := range d.Resources {
		if made.Type == kind {
			found = append(found, made)
		}
	}
	return found
}
