package funchost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// function is one indexed function.
type function struct {
	name    string
	trigger string // the trigger binding's parameter name: the key under Data
	retry   *retryPolicy
	// Exactly one of these is set.
	cosmos     *cosmosTrigger
	timer      *timerTrigger
	http       *httpTrigger
	serviceBus *serviceBusTrigger
	// httpOut is the name of the http output binding, if there is one.
	httpOut  string
	disabled bool
}

// functionJSON is the file.
type functionJSON struct {
	Bindings []binding       `json:"bindings"`
	Retry    json.RawMessage `json:"retry"`
}

// binding is one entry of bindings, its members as they stand. Names are compared without case, as the host does.
type binding map[string]json.RawMessage

func (b *binding) UnmarshalJSON(text []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*b = make(binding, len(raw))
	for name, value := range raw {
		(*b)[strings.ToLower(name)] = value
	}
	return nil
}

// indexer reads one function after the other.
type indexer struct {
	root     string
	settings map[string]string
	host     hostConfig
	tune     Tune
}

// index reads one function folder. Every error is a reason for which the real host would not run the function, or would
// run it wrongly without a word; the text says which.
func (x indexer) index(name string) (*function, error) {
	if !functionName.MatchString(name) || strings.EqualFold(name, "host") {
		return nil, fmt.Errorf("'%s' is not a valid function name", name)
	}
	text, err := os.ReadFile(filepath.Join(x.root, name, "function.json"))
	if err != nil {
		return nil, err
	}
	var file functionJSON
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("function.json: %w", err)
	}
	if len(file.Bindings) == 0 {
		return nil, errors.New("function.json: at least one binding must be declared")
	}
	f := &function{name: name, disabled: x.isDisabled(name)}
	for i, b := range file.Bindings {
		if err := x.bind(f, b); err != nil {
			return nil, fmt.Errorf("function.json: bindings[%d]: %w", i, err)
		}
	}
	if f.trigger == "" {
		return nil, errors.New("function.json: no trigger binding specified")
	}
	if f.httpOut != "" && f.http == nil {
		return nil, errors.New("function.json: an http output needs an httpTrigger")
	}
	if f.retry, err = parseRetry(file.Retry); err != nil {
		return nil, fmt.Errorf("function.json: retry: %w", err)
	}
	if f.retry != nil && (f.http != nil || f.serviceBus != nil) {
		return nil, errors.New("function.json: retries are supported by cosmosDBTrigger and timerTrigger only")
	}
	return f, nil
}

func (x indexer) isDisabled(name string) bool {
	value := x.settings["AzureWebJobs."+name+".Disabled"]
	return strings.EqualFold(value, "true") || value == "1"
}

func (x indexer) bind(f *function, b binding) error {
	kind, err := b.text("type")
	if err != nil {
		return err
	}
	name, err := b.text("name")
	if err != nil {
		return err
	}
	direction, err := b.text("direction")
	if err != nil {
		return err
	}
	if !bindingName.MatchString(name) {
		return fmt.Errorf("the binding name '%s' is invalid", name)
	}
	isTrigger := strings.HasSuffix(strings.ToLower(kind), "trigger")
	if isTrigger && direction != "" && !strings.EqualFold(direction, "in") {
		return fmt.Errorf("a trigger's direction must be \"in\", found %q", direction)
	}
	if isTrigger && f.trigger != "" {
		return errors.New("multiple trigger bindings defined; a function can only have a single trigger")
	}
	if isTrigger {
		f.trigger = name
	}
	switch strings.ToLower(kind) {
	case "cosmosdbtrigger":
		if err = x.needsBundle(kind); err == nil {
			err = x.needsStorage(kind)
		}
		if err == nil {
			f.cosmos, err = x.cosmosTrigger(b)
		}
	case "timertrigger":
		if err = x.needsStorage(kind); err == nil {
			f.timer, err = x.timerTrigger(f.name, b)
		}
	case "servicebustrigger":
		err = x.bindServiceBus(f, kind, b)
	case "httptrigger":
		f.http, err = x.httpTrigger(f.name, b)
	case "http":
		f.httpOut, err = httpOutput(f, name, direction)
	case "":
		err = errors.New("'type' is missing")
	default:
		err = fmt.Errorf(
			"the binding type '%s' is not one this emulator has (cosmosDBTrigger, timerTrigger, serviceBusTrigger, httpTrigger, http)", kind)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", kind, name, err)
	}
	return nil
}

func (x indexer) bindServiceBus(f *function, kind string, b binding) error {
	if err := x.needsBundle(kind); err != nil {
		return err
	}
	if err := x.needsStorage(kind); err != nil {
		return err
	}
	var err error
	f.serviceBus, err = x.serviceBusTrigger(b)
	return err
}

func httpOutput(f *function, name, direction string) (string, error) {
	if !strings.EqualFold(direction, "out") {
		return "", fmt.Errorf("the direction of http must be \"out\", found %q", direction)
	}
	if f.httpOut != "" {
		return "", errors.New("a second http output")
	}
	return name, nil
}

// needsBundle: triggers outside the host's core come with the extension bundle; without it their type is not
// registered. This emulator imitates the extensions of bundle 4: Cosmos DB 4.x, Service Bus 5.x.
func (x indexer) needsBundle(kind string) error {
	id, v := x.host.bundleID, x.host.bundleVersion
	if !strings.EqualFold(id, "Microsoft.Azure.Functions.ExtensionBundle") || !strings.HasPrefix(v, "[4.") ||
		!strings.HasSuffix(v, "5.0.0)") {
		return fmt.Errorf(
			"'%s' is not registered: extensionBundle is %q, %q, and Microsoft.Azure.Functions.ExtensionBundle, [4.*, 5.0.0) has it",
			kind, id, v)
	}
	return nil
}

// needsStorage: AzureWebJobsStorage is mandatory for every trigger but HTTP (docs/facts.md F36).
func (x indexer) needsStorage(kind string) error {
	for _, name := range []string{
		"AzureWebJobsStorage", "AzureWebJobsStorage__accountName", "AzureWebJobsStorage__blobServiceUri",
	} {
		if x.settings[name] != "" {
			return nil
		}
	}
	return fmt.Errorf(
		"missing value for AzureWebJobsStorage: it is required for all triggers other than httpTrigger, so also for %s",
		kind)
}

// text returns a string property, "" when it is absent.
func (b binding) text(name string) (string, error) {
	raw, ok := b[strings.ToLower(name)]
	if !ok || string(raw) == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("'%s' must be a string, found %s", name, raw)
	}
	return s, nil
}

// flag returns a boolean property; the host also takes it as text.
func (b binding) flag(name string, fallback bool) (bool, error) {
	raw, ok := b[strings.ToLower(name)]
	if !ok {
		return fallback, nil
	}
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("'%s' must be true or false, found %s", name, raw)
}

// number returns a whole number that is not negative, 0 when it is absent; the host also takes it as text.
func (b binding) number(name string) (int, error) {
	raw, ok := b[strings.ToLower(name)]
	if !ok {
		return 0, nil
	}
	var n int
	if err := json.Unmarshal([]byte(strings.Trim(string(raw), `"`)), &n); err != nil || n < 0 {
		return 0, fmt.Errorf("'%s' must be a whole number that is not negative, found %s", name, raw)
	}
	return n, nil
}
