// Package open makes the adapters that the settings name, for the handler, sqlwriterctl and the local stack alike.
// It makes no request; the first use of an adapter connects.
package open

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sqlwriter/internal/blob"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/servicebus"
)

// Mapping reads the file of the setting MAPPING; without a path it is the default. zone is the deployment's. Errors:
// those of os.ReadFile; infrastructure, code "settings".
func Mapping(path string, zone *time.Location) (*invoice.Mapping, error) {
	if path == "" {
		return invoice.DefaultMapping(), nil
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("mapping: %w", err)
	}
	return invoice.ReadMapping(file, zone)
}

// MappingInUse names a mapping for people: by its file's name, and by its version.
func MappingInUse(path string, m *invoice.Mapping) string {
	name := "the default"
	if path != "" {
		name = filepath.Base(path)
	}
	return fmt.Sprintf("%s, version %d", name, m.Version())
}

// Reader makes what reads documents, as the settings say.
func Reader(m *invoice.Mapping) invoice.Reader { return invoice.Reader{Mapping: m} }

// Results opens the container of the results. Errors by kind: infrastructure, code "settings".
func Results(c config.Cosmos) (*cosmos.Container, error) { return container(c, c.Container, false) }

// Control opens the container of the control document. Errors by kind: infrastructure, code "settings".
func Control(c config.Cosmos) (*cosmos.Container, error) {
	return container(c, config.ControlContainer, true)
}

// Leases opens the container of the change feed's leases. Errors by kind: infrastructure, code "settings".
func Leases(c config.Cosmos) (*cosmos.Container, error) { return container(c, c.LeaseContainer, true) }

func container(c config.Cosmos, name string, own bool) (*cosmos.Container, error) {
	return cosmos.Open(cosmos.Options{
		Connection: c.Connection.Reveal(), AccountEndpoint: c.Endpoint, ClientID: c.ClientID,
		Database: c.Database, Container: name,
		KeyIsID: own,
	})
}

// Evidence opens the store of an environment's evidence. Errors by kind: infrastructure, code "settings".
func Evidence(c config.Blob, sysName string) (*blob.Store, error) {
	return blob.Open(blob.Options{
		Connection: c.Connection.Reveal(), ServiceURI: c.ServiceURI, ClientID: c.ClientID,
		Container: config.EvidenceContainer, Prefix: sysName,
	})
}

// ServiceBus opens the namespace of the queues. Errors by kind: infrastructure, code "settings".
func ServiceBus(c config.ServiceBus) (*servicebus.Namespace, error) {
	return servicebus.Open(servicebus.Options{
		Connection: c.Connection.Reveal(), FullyQualifiedNamespace: c.Namespace, ClientID: c.ClientID,
	})
}
