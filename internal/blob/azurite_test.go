package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/azurite"
)

// patient are timeouts for a real server on a busy machine.
func patient() Timeouts {
	return Timeouts{Keep: time.Minute, Read: time.Minute, List: time.Minute, Ping: time.Minute}
}

// newContainer is a name that no other test uses.
func newContainer() string { return "t-" + strings.ToLower(rand.Text()[:12]) }

func openOn(t *testing.T, connection, container string, timeouts Timeouts) *Store {
	t.Helper()
	s, err := Open(Options{Connection: connection, Container: container, Prefix: "web", Timeouts: timeouts})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// vendorView reads the container with the vendor's client alone.
type vendorView struct{ *container.Client }

func openVendorView(t *testing.T, server *azurite.Server, name string) vendorView {
	t.Helper()
	transport := newTransport()
	t.Cleanup(transport.CloseIdleConnections)
	c, err := azblob.NewClientFromConnectionString(server.ConnectionString(),
		&azblob.ClientOptions{ClientOptions: clientOptions(transport).ClientOptions})
	require.NoError(t, err)
	return vendorView{c.ServiceClient().NewContainerClient(name)}
}

// read gives a blob by its full name.
func (e vendorView) read(t testing.TB, name string) ([]byte, bool) {
	t.Helper()
	resp, err := e.NewBlobClient(name).DownloadStream(context.Background(), nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ContainerNotFound) {
		return nil, false
	}
	require.NoError(t, err, name)
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return content, true
}

func (e vendorView) names(t testing.TB) []string {
	t.Helper()
	var names []string
	for pager := e.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(context.Background())
		require.NoError(t, err)
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	conformance.TestEvidence(t, func(t *testing.T) conformance.EvidenceHarness {
		name := newContainer()
		view := openVendorView(t, server, name)
		return conformance.EvidenceHarness{
			Evidence: openOn(t, server.ConnectionString(), name, patient()),
			Read:     func(t testing.TB, file string) ([]byte, bool) { return view.read(t, "web/"+file) },
		}
	})
}

func TestEvidenceFiles(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	conformance.TestEvidenceFiles(t, func(t *testing.T) conformance.EvidenceFilesHarness {
		name := newContainer()
		view := openVendorView(t, server, name)
		// Another environment's files are in no listing.
		other, err := Open(
			Options{Connection: server.ConnectionString(), Container: name, Prefix: "web2", Timeouts: patient()})
		require.NoError(t, err)
		t.Cleanup(other.Close)
		require.NoError(t, other.Keep(t.Context(), "failed/1/a/20-f/metadata.json", []byte("{}")))
		return conformance.EvidenceFilesHarness{
			Evidence: openOn(t, server.ConnectionString(), name, patient()),
			Read:     func(t testing.TB, file string) ([]byte, bool) { return view.read(t, "web/"+file) },
		}
	})
}

func TestAFileInTheContainer(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	name := newContainer()
	s, view := openOn(t, server.ConnectionString(), name, patient()), openVendorView(t, server, name)

	_, err := s.Read(t.Context(), "a")
	require.Equal(t, "404/ContainerNotFound", fault.CodeOf(err), "%v", err)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))

	require.NoError(t, s.Keep(t.Context(), "failed/1/a%2Fb/e/original.json", []byte("{}")))
	require.Equal(t, []string{"web/failed/1/a%2Fb/e/original.json"}, view.names(t),
		"the readable name, and nothing escaped twice")
	properties, err := view.NewBlobClient("web/failed/1/a%2Fb/e/original.json").GetProperties(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "application/json", *properties.ContentType)
	require.Equal(t, blob.BlobTypeBlockBlob, *properties.BlobType)

	other, err := Open(
		Options{Connection: server.ConnectionString(), Container: name, Prefix: "dev", Timeouts: patient()})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	_, err = other.Read(t.Context(), "failed/1/a%2Fb/e/original.json")
	require.True(t, fault.Has(err, fault.Gone), "environments share a container and no file: %v", err)
	require.Equal(t, fault.Document, fault.KindOf(err))

	large := bytes.Repeat([]byte("large "), 1<<19)
	require.NoError(t, s.Keep(t.Context(), "large", large))
	content, err := s.Read(t.Context(), "large")
	require.NoError(t, err)
	require.True(t, bytes.Equal(large, content))
	_, err = s.Read(t.Context(), "large/")
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func TestPingMakesTheContainer(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	name := newContainer()
	s, view := openOn(t, server.ConnectionString(), name, patient()), openVendorView(t, server, name)
	_, err := view.GetProperties(t.Context(), nil)
	require.True(t, bloberror.HasCode(err, bloberror.ContainerNotFound), "%v", err)
	for range 2 {
		require.NoError(t, s.Ping(t.Context()))
	}
	_, err = view.GetProperties(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, s.makeContainer(t.Context()), "an existing container is not an error")
}

// In a careful deployment the identity may write files and not make containers.
func TestWithARightToFilesOnly(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	name := newContainer()
	view := openVendorView(t, server, name)
	c, err := parseConnection(server.ConnectionString())
	require.NoError(t, err)
	cred, err := azblob.NewSharedKeyCredential(c.name, c.key)
	require.NoError(t, err)
	query, err := sas.BlobSignatureValues{
		ContainerName: name, ExpiryTime: time.Now().Add(time.Hour),
		Permissions: (&sas.ContainerPermissions{Read: true, Create: true, Write: true}).String(),
	}.SignWithSharedKey(cred)
	require.NoError(t, err)
	s := openOn(t, "BlobEndpoint="+c.endpoint+";SharedAccessSignature="+query.Encode(), name, patient())

	err = s.Keep(t.Context(), "a", []byte("x"))
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Contains(t, err.Error(), "make container: infrastructure 403/Auth", "the refused call")
	requireNoSecret(t, err, query.Signature())

	_, err = view.Create(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, s.Keep(t.Context(), "a", []byte("x")), "an existing container needs no further right")
	content, err := s.Read(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "x", string(content))

	_, _, err = s.FilesBelow(t.Context(), "failed", "")
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Contains(t, err.Error(), "blob: list: infrastructure 403/Auth", "the refused call")
	requireNoSecret(t, err, query.Signature())
	require.Equal(t,
		ops.EvidencePlace{Account: strings.TrimRight(c.endpoint, "/") + "/", Container: name, Prefix: "web"}, s.Place(),
		"without the signature")
}

func TestAWrongKeyIsInfrastructure(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	wrong := strings.Replace(server.ConnectionString(), "AccountKey=Eby8", "AccountKey=AAAA", 1)
	s := openOn(t, wrong, newContainer(), patient())
	for _, err := range []error{s.Keep(t.Context(), "a", nil), s.Ping(t.Context())} {
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
		require.Contains(t, fault.CodeOf(err), "403/Auth")
		requireNoSecret(t, err, "AAAAvdM02xNO")
	}
}

// TestFaultsOnTheWire fails every request in one way. Each Keep ends with its kind within its deadline. After the
// failure the next one succeeds, and the first content is complete.
func TestFaultsOnTheWire(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	const (
		deadline = 4 * time.Second  // room for a repetition or two
		busy     = 30 * time.Second // what a machine that has ten times too much to do may add
	)
	for _, c := range []struct {
		name string
		// begin starts the proxy's failure.
		begin func(*azurite.Proxy)
		codes []string
		// applied is true when the server did the work.
		applied bool
	}{
		{"refused", (*azurite.Proxy).Refuse, []string{"refused"}, false},
		{"cut before the request", always(azurite.CutBefore), []string{"eof"}, false},
		{"reset in the middle of the request", always(azurite.CutMidway), []string{"reset"}, false},
		{"cut after it was applied", always(azurite.CutAfter), []string{"eof"}, true},
		{"hangs", always(azurite.Hang), []string{"timeout"}, false},
		{"hangs after it was applied", always(azurite.HangAfter), []string{"timeout"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := newContainer()
			proxy, view := server.Proxy(t), openVendorView(t, server, name)
			_, err := view.Create(t.Context(), nil)
			require.NoError(t, err)
			s := openOn(t, proxy.ConnectionString(), name, Timeouts{Keep: deadline, Read: deadline, Ping: deadline})
			first := bytes.Repeat([]byte("first "), 1<<18) // 1.5 MB: more than the buffers of the connection
			c.begin(proxy)

			began := time.Now()
			err = s.Keep(t.Context(), "a", first)
			took := time.Since(began)
			require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
			require.Contains(t, c.codes, fault.CodeOf(err), "%v", err)
			require.Less(t, took, deadline+busy)
			content, stored := view.read(t, "web/a")
			require.Equal(t, c.applied, stored)
			if stored {
				require.True(t, bytes.Equal(first, content))
			}

			_, err = s.Read(t.Context(), "a")
			require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
			require.Contains(t, c.codes, replaceReset(fault.CodeOf(err), c.codes), "%v", err)

			proxy.Always(azurite.Pass)
			if c.name == "refused" {
				proxy.Listen(t)
			}
			s.timeouts = patient()
			require.NoError(t, s.Keep(t.Context(), "a", first))
			content, stored = view.read(t, "web/a")
			require.True(t, stored)
			require.True(t, bytes.Equal(first, content))
		})
	}
}

// replaceReset replaces a cut in the body by a reset: a request without a body cannot be cut in the middle.
func replaceReset(code string, codes []string) string {
	if code == "eof" && slices.Contains(codes, "reset") {
		return "reset"
	}
	return code
}

func always(f azurite.Fault) func(*azurite.Proxy) {
	return func(p *azurite.Proxy) { p.Always(f) }
}

// TestOneFaultIsRepaired fails the first request: the SDK retries it, and the 409 that the first PUT causes is success.
func TestOneFaultIsRepaired(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	for name, f := range map[string]azurite.Fault{
		"cut before": azurite.CutBefore, "cut midway": azurite.CutMidway, "cut after": azurite.CutAfter,
		"hangs": azurite.Hang, "hangs after": azurite.HangAfter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := newContainer()
			proxy, view := server.Proxy(t), openVendorView(t, server, name)
			_, err := view.Create(t.Context(), nil)
			require.NoError(t, err)
			s := openOn(t, proxy.ConnectionString(), name, Timeouts{Keep: 6 * time.Second})
			content := bytes.Repeat([]byte("x"), 1<<20)
			proxy.Plan(f)
			require.NoError(t, s.Keep(t.Context(), "a", content))
			require.Equal(t, []string{"PUT", "PUT"}, proxy.Seen())
			got, stored := view.read(t, "web/a")
			require.True(t, stored)
			require.True(t, bytes.Equal(content, got))
		})
	}
}

// The making of the container may also be cut at every step.
func TestFaultsWhileTheContainerIsMade(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	for _, plan := range [][]azurite.Fault{
		{azurite.CutAfter},
		{azurite.Pass, azurite.CutBefore},
		{azurite.Pass, azurite.CutAfter},
		{azurite.Pass, azurite.Pass, azurite.CutBefore},
		{azurite.Pass, azurite.Pass, azurite.CutAfter},
	} {
		name := newContainer()
		proxy, view := server.Proxy(t), openVendorView(t, server, name)
		s := openOn(t, proxy.ConnectionString(), name, patient())
		proxy.Plan(plan...)
		require.NoError(t, s.Keep(t.Context(), "a", []byte("x")), "%v", plan)
		require.Equal(t, []string{"PUT", "PUT", "PUT", "PUT"}, proxy.Seen(), "%v", plan)
		content, stored := view.read(t, "web/a")
		require.True(t, stored)
		require.Equal(t, "x", string(content))
	}
}

func TestTheCallersDeadlineCounts(t *testing.T) {
	t.Parallel()
	server := azuriteOf(t)
	proxy := server.Proxy(t)
	proxy.Always(azurite.Hang)
	s := openOn(t, proxy.ConnectionString(), newContainer(), patient())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := s.Keep(ctx, "a", nil)
	require.Equal(t, "timeout", fault.CodeOf(err), "%v", err)
	require.Less(t, time.Since(began), patient().Keep, "the store's own deadline is later")
}

// requireNoSecret checks every error of a chain, because a log may print each cause.
func requireNoSecret(t *testing.T, err error, secrets ...string) {
	t.Helper()
	var visit func(error)
	visit = func(err error) {
		if err == nil {
			return
		}
		for _, s := range secrets {
			require.NotEmpty(t, s)
			require.NotContains(t, err.Error(), s)
		}
		switch u := err.(type) { //nolint:errorlint // visits every link of the chain
		case interface{ Unwrap() error }:
			visit(u.Unwrap())
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				visit(e)
			}
		}
	}
	visit(err)
}
