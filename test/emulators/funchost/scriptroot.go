package funchost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

// defaultFunctionTimeout is the host's own on every plan but Consumption (docs/facts.md F24).
const defaultFunctionTimeout = 30 * time.Minute

// hostConfig is what the host takes from host.json; everything else in the file is ignored, as the host ignores it.
type hostConfig struct {
	bundleID, bundleVersion string
	executable              string
	arguments               []string
	functionTimeout         time.Duration // 0 = unlimited
	http                    httpOptions
	serviceBus              serviceBusOptions
}

// hostJSON is the file.
type hostJSON struct {
	Version         string          `json:"version"`
	FunctionTimeout *string         `json:"functionTimeout"`
	ExtensionBundle *extensionEntry `json:"extensionBundle"`
	CustomHandler   *struct {
		Description *struct {
			DefaultExecutablePath string   `json:"defaultExecutablePath"`
			Arguments             []string `json:"arguments"`
		} `json:"description"`
		EnableForwardingHTTPRequest bool `json:"enableForwardingHttpRequest"`
		EnableProxyingHTTPRequest   bool `json:"enableProxyingHttpRequest"`
	} `json:"customHandler"`
	Extensions struct {
		HTTP       json.RawMessage `json:"http"`
		ServiceBus json.RawMessage `json:"serviceBus"`
	} `json:"extensions"`
}

type extensionEntry struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// readHostConfig reads and checks host.json and finds the executable. Every error names the file and the property.
func readHostConfig(root string, settings map[string]string) (hostConfig, error) {
	path := filepath.Join(root, "host.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return hostConfig{}, fmt.Errorf("script root: %w", err)
	}
	var file hostJSON
	if err := json.Unmarshal(text, &file); err != nil {
		return hostConfig{}, fmt.Errorf("host.json: %w", err)
	}
	switch file.Version {
	case "2.0":
	case "":
		return hostConfig{}, errors.New("host.json is missing the required 'version' property (\"2.0\")")
	default:
		return hostConfig{},
			fmt.Errorf(
				"host.json: '%s' is an invalid value for 'version': this is the version of the file's form, always \"2.0\"", file.Version)
	}
	if runtime, set := settings["FUNCTIONS_WORKER_RUNTIME"]; set && !strings.EqualFold(runtime, "custom") {
		return hostConfig{}, fmt.Errorf("FUNCTIONS_WORKER_RUNTIME is %q: a custom handler needs \"custom\"", runtime)
	}
	if file.CustomHandler == nil || file.CustomHandler.Description == nil {
		return hostConfig{}, errors.New("host.json: customHandler.description is missing (Missing worker Description)")
	}
	if file.CustomHandler.EnableForwardingHTTPRequest || file.CustomHandler.EnableProxyingHTTPRequest {
		return hostConfig{},
			errors.New(
				"host.json: enableForwardingHttpRequest and enableProxyingHttpRequest are not implemented by this emulator")
	}
	var config hostConfig
	if config.http, err = parseHTTPOptions(file.Extensions.HTTP); err != nil {
		return hostConfig{}, err
	}
	if file.ExtensionBundle != nil {
		config.bundleID, config.bundleVersion = file.ExtensionBundle.ID, file.ExtensionBundle.Version
	}
	if config.functionTimeout, err = functionTimeout(file.FunctionTimeout); err != nil {
		return hostConfig{}, err
	}
	if config.serviceBus, err = parseServiceBusOptions(file.Extensions.ServiceBus); err != nil {
		return hostConfig{}, err
	}
	description := file.CustomHandler.Description
	config.arguments = description.Arguments
	config.executable, err = findExecutable(root, description.DefaultExecutablePath)
	return config, err
}

func functionTimeout(text *string) (time.Duration, error) {
	if text == nil {
		return defaultFunctionTimeout, nil
	}
	if *text == "-1" {
		return 0, nil
	}
	d, err := parseTimeSpan(*text)
	if err != nil || d <= 0 {
		return 0,
			fmt.Errorf(
				"host.json: functionTimeout %q is neither \"-1\" nor a positive time span such as \"00:10:00\"", *text)
	}
	return d, nil
}

// findExecutable joins the path to the root when the file is there and looks in PATH otherwise
// (HttpWorkerDescription.cs ApplyDefaultsAndValidate). The host would find out that a file can't be executed only when
// it starts it, and then stay up without a handler; here it is an error at once.
func findExecutable(root, path string) (string, error) {
	if path == "" {
		return "", errors.New("host.json: customHandler.description.defaultExecutablePath cannot be empty")
	}
	candidate := joined(root, path)
	info, err := os.Stat(candidate)
	if err == nil && !info.IsDir() {
		if info.Mode()&0o111 == 0 {
			return "",
				fmt.Errorf(
					"host.json: defaultExecutablePath %q is not executable (mode %s): the file lost its x bit on the way into the package", path, info.Mode().Perm())
		}
		return candidate, nil
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "",
			fmt.Errorf(
				"host.json: defaultExecutablePath %q is neither a file in the script root nor a program in PATH: %w",
				path, err)
	}
	return found, nil
}

func joined(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}

// Names and placeholders. Sources: Utility.cs FunctionNameValidationRegex and BindingNameValidationRegex.
var (
	percentName  = regexp.MustCompile(`%[^%]+%`)                        //nolint:gochecknoglobals // a compiled constant
	functionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,127}$`) //nolint:gochecknoglobals // a compiled constant
	bindingName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]{0,127}$`)   //nolint:gochecknoglobals // a compiled constant
)

// resolve replaces every %NAME% by its app setting. A name that is not set is an error; there are no defaults
// (docs/facts.md F35).
func resolve(text string, settings map[string]string) (string, error) {
	var missing []string
	out := percentName.ReplaceAllStringFunc(text, func(match string) string {
		value, ok := settings[strings.Trim(match, "%")]
		if !ok || value == "" {
			missing = append(missing, match)
		}
		return value
	})
	if missing != nil {
		return "",
			fmt.Errorf("'%s' does not resolve to a value: set it in the app settings", strings.Join(missing, "', '"))
	}
	return out, nil
}

// readFunctionDirs returns the names of the direct child folders that hold a function.json, in order; deeper ones do
// not count (HostFunctionMetadataProvider.cs ReadFunctionsMetadata).
func readFunctionDirs(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("script root: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if _, err := os.Stat(filepath.Join(root, entry.Name(), "function.json")); err == nil {
			names = append(names, entry.Name())
		}
	}
	sort.Strings(names)
	return names, nil
}

// parseTimeSpan reads the .NET form [-][d.]hh:mm[:ss[.fffffff]] or a bare number of days.
func parseTimeSpan(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a time span ([d.]hh:mm:ss)", text)
	m := timeSpan.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, bad
	}
	number := func(s string) time.Duration {
		n, _ := strconv.Atoi(s) // the expression admits digits only, and few
		return time.Duration(n)
	}
	if m[7] != "" {
		return number(m[7]) * 24 * time.Hour, nil
	}
	hours, minutes, seconds := number(m[3]), number(m[4]), number(m[5])
	if hours > 23 || minutes > 59 || seconds > 59 {
		return 0, bad
	}
	fraction := number((m[6] + "0000000")[:7]) * 100
	d := number(m[2])*24*time.Hour + hours*time.Hour + minutes*time.Minute + seconds*time.Second + fraction
	if m[1] == "-" {
		d = -d
	}
	return d, nil
}

var timeSpan = regexp.MustCompile(`^(?:(-)?(?:(\d{1,5})\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?|(\d{1,5}))$`) //nolint:gochecknoglobals // a compiled constant
