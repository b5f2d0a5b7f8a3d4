package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
)

// timerStore keeps the status of timers between runs of the host.
type timerStore interface {
	// load returns nil when nothing has been stored yet.
	load(ctx context.Context, functionName string) (*scheduleStatus, error)
	save(ctx context.Context, functionName string, s scheduleStatus) error
}

const (
	hostsContainer = "azure-webjobs-hosts"
	// azuriteConnection is what UseDevelopmentStorage=true stands for; the Go SDK does not know the short form
	// (docs/facts.md F87). The key is the emulator's published one.
	azuriteConnection = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
		"AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;" + //nolint:gosec // published by the vendor
		"BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)

// blobTimerStore keeps each status in the blob timers/{host id}/Host.Functions.{function}/status of azure-webjobs-hosts
// (StorageScheduleMonitor.cs).
type blobTimerStore struct {
	client *azblob.Client
	hostID string
}

// openTimerStore opens AzureWebJobsStorage: a connection string, the short form of the emulator's, or an account name
// with an identity. Errors name the setting and never its value.
func openTimerStore(settings map[string]string, hostID string) (timerStore, error) {
	text := settings["AzureWebJobsStorage"]
	if text == "" {
		url := settings["AzureWebJobsStorage__blobServiceUri"]
		if url == "" {
			url = fmt.Sprintf("https://%s.blob.core.windows.net/", settings["AzureWebJobsStorage__accountName"])
		}
		credential, err := credentialOf(settings["AzureWebJobsStorage__clientId"])
		if err != nil {
			return nil, fmt.Errorf("AzureWebJobsStorage: %w", err)
		}
		client, err := azblob.NewClient(url, credential, nil)
		if err != nil {
			return nil, fmt.Errorf("AzureWebJobsStorage: %w", err)
		}
		return &blobTimerStore{client: client, hostID: hostID}, nil
	}
	if strings.EqualFold(strings.Trim(text, "; "), "UseDevelopmentStorage=true") {
		text = azuriteConnection
	}
	client, err := azblob.NewClientFromConnectionString(text, nil)
	if err != nil {
		return nil, errors.New("AzureWebJobsStorage is not a storage connection string") // the SDK's error may quote it
	}
	return &blobTimerStore{client: client, hostID: hostID}, nil
}

func (s *blobTimerStore) blob(functionName string) string {
	return fmt.Sprintf("timers/%s/Host.Functions.%s/status", s.hostID, functionName)
}

func (s *blobTimerStore) load(ctx context.Context, functionName string) (*scheduleStatus, error) {
	response, err := s.client.DownloadStream(ctx, hostsContainer, s.blob(functionName), nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ContainerNotFound) {
		return nil, nil //nolint:nilnil // nothing stored is an answer
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var status scheduleStatus
	if err := json.Unmarshal(text, &status); err != nil {
		return nil, fmt.Errorf("%s: %w", s.blob(functionName), err)
	}
	return &status, nil
}

func (s *blobTimerStore) save(ctx context.Context, functionName string, status scheduleStatus) error {
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	if _, err := s.client.CreateContainer(ctx, hostsContainer, nil); err != nil &&
		!bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return err
	}
	_, err = s.client.UploadBuffer(ctx, hostsContainer, s.blob(functionName), text, nil)
	return err
}
