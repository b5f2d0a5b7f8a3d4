package blob

import (
	"context"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sqlwriter/internal/commit"
)

// Store keeps the files of one environment in a container. It is safe for concurrent use.
type Store struct {
	client    *container.Client
	transport transport
	// prefix is the environment and a slash.
	prefix   string
	timeouts Timeouts
}

var _ commit.Evidence = (*Store)(nil)

// Close closes idle connections.
func (s *Store) Close() { s.transport.CloseIdleConnections() }

// Keep stores a file as {sys_name}/{name} unless it exists. See commit.Evidence.
func (s *Store) Keep(ctx context.Context, name string, content []byte) error {
	if err := commit.CheckEvidenceName(name); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx, s.timeouts.Keep)
	defer cancel()
	return s.inContainer(ctx, func() error { return s.upload(ctx, name, content) })
}

// inContainer stores a file, and makes the container where it is missing.
func (s *Store) inContainer(ctx context.Context, put func() error) error {
	err := put()
	if !lacksContainer(err) {
		return err
	}
	if err := s.makeContainer(ctx); err != nil {
		return err
	}
	return put()
}

// Read gives the file that Keep stored under name. Errors by kind: condition Gone when the file does not exist;
// infrastructure (also for a missing container or a truncated body), throttled; internal for an invalid name.
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	op := operation{"blob: read", onFile}
	if err := commit.CheckEvidenceName(name); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx, s.timeouts.Read)
	defer cancel()
	resp, err := s.file(name).DownloadStream(ctx, nil)
	if err != nil {
		return nil, translate(op, err)
	}
	defer resp.Body.Close() //nolint:errcheck // the body is read whole, or the read failed
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, translate(op, err)
	}
	return content, nil
}

// Ping checks that the container can be reached, and makes a missing one. A missing right thus shows at start-up and
// not with the first poison message. Errors by kind: infrastructure, throttled.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := bounded(ctx, s.timeouts.Ping)
	defer cancel()
	_, err := s.client.GetProperties(ctx, nil)
	if err == nil {
		return nil
	}
	if err = translate(operation{"blob: ping", onContainer}, err); lacksContainer(err) {
		return s.makeContainer(ctx)
	}
	return err
}

// upload sends one PUT (see doc.go).
func (s *Store) upload(ctx context.Context, name string, content []byte) error {
	_, err := s.file(name).UploadBuffer(ctx, content, &blockblob.UploadBufferOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("application/json")},
		AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)},
		},
	})
	if fileExists(err) {
		return nil
	}
	return translated(operation{"blob: keep", onContainer}, err)
}

// translated is translate for a call that may have succeeded.
func translated(op operation, err error) error {
	if err == nil {
		return nil
	}
	return translate(op, err)
}

// makeContainer makes the container; one that exists is success.
func (s *Store) makeContainer(ctx context.Context) error {
	_, err := s.client.Create(ctx, nil)
	if err == nil || bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil
	}
	return translate(operation{"blob: make container", onContainer}, err)
}

func lacksContainer(err error) bool { return bloberror.HasCode(err, bloberror.ContainerNotFound) }

// file gives a file's client. The SDK escapes the name in the address.
func (s *Store) file(name string) *blockblob.Client {
	return s.client.NewBlockBlobClient(s.prefix + name)
}
