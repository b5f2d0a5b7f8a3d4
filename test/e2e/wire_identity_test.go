package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/test/bicep"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/loopback"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/sample"
)

// handlerHeader and hostHeader are the IDENTITY_HEADER of the two processes.
const handlerHeader, hostHeader = "handler-header-marker", "host-header-marker"

// storage is whom tokens for blobs are for.
const storage = "https://storage.azure.com"

// The faults of an identity endpoint.
const otherClient, silentEnd = "another client id", "silence"

// identities imitates the endpoint of App Service that gives tokens of a user-assigned identity.
type identities struct {
	t        *testing.T
	clientID string

	mu sync.Mutex
	// fault is what requests of the handler meet, lifetime that of its next tokens, and given how many it has had for
	// each resource.
	fault    string
	lifetime time.Duration
	given    map[string]int
}

// meet lets requests of the handler meet a fault from now on, and gives its tokens this lifetime.
func (i *identities) meet(fault string, lifetime time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fault, i.lifetime = fault, lifetime
}

// tokens counts the handler's tokens by their resource.
func (i *identities) tokens() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.given)
}

func (i *identities) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	fault, lifetime := i.fault, i.lifetime
	i.mu.Unlock()
	q, header := r.URL.Query(), r.Header.Get("X-IDENTITY-HEADER")
	if header == hostHeader {
		fault, lifetime = "", 24*time.Hour
	}
	resource := q.Get("resource")
	switch {
	case (header != handlerHeader && header != hostHeader) || q.Get("api-version") != "2019-08-01" || resource == "":
		i.t.Errorf("the identity endpoint does not know this request: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusBadRequest)
		return
	case fault == silentEnd:
		<-r.Context().Done()
		return
	case fault == otherClient || q.Get("client_id") != i.clientID:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"statusCode":400,"message":"No User Assigned or Delegated Managed Identity found for specified ClientId/ResourceId/PrincipalId."}`)
		return
	case header == handlerHeader:
		i.mu.Lock()
		i.given[resource]++
		i.mu.Unlock()
	}
	expires := strconv.FormatInt(time.Now().Add(lifetime).Unix(), 10)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"access_token": "token-marker|" + resource + "|" + expires, "expires_on": expires, "resource": resource,
		"token_type": "Bearer", "client_id": q.Get("client_id"),
	})
}

// takes reports whether a service takes a token.
func takes(token, resource string) bool {
	expires, ok := strings.CutPrefix(token, "token-marker|"+resource+"|")
	at, err := strconv.ParseInt(expires, 10, 64)
	return ok && err == nil && time.Now().Unix() < at
}

// cloud is a stack whose Cosmos DB and blobs are reached over TLS by the names that the template gives them, with
// tokens of one identity and nothing else.
type cloud struct {
	*stack

	identity *identities
	// given are the settings as evaluated.
	given map[string]string
	// address is the host's, env what the platform gives to both processes. account is whom tokens for Cosmos DB are
	// for.
	address, account string
	env              []string
}

// inCloud is a stack that has the template's names. A proxy leads each https connection to the stack's servers, which
// have one certificate for these names; any other name fails the test.
func inCloud(t *testing.T, blobs *azurite.Server, lines ...int64) *cloud {
	t.Helper()
	s := newStackOver(t, newContainers(t, func(o *cosmosdb.Options) { o.AcceptBearer = true }), lines...)
	s.recover, s.patience = "*/2 * * * * *", 3*time.Minute // azcosmos may wait a minute for a token
	given, err := bicep.Settings()
	require.NoError(t, err)
	c := &cloud{stack: s, given: given, address: loopback.Address(t)}
	require.Equal(t, []string{database, container}, []string{c.given["COSMOS_DATABASE"], c.given["COSMOS_CONTAINER"]})
	s.cosmos.Leases(t, database, c.given["LEASE_CONTAINER"])
	c.identity = &identities{
		t: t, clientID: c.given["COSMOS_CONNECTION__clientId"], given: map[string]int{}, lifetime: 24 * time.Hour,
	}
	endpoint := httptest.NewServer(c.identity)
	t.Cleanup(endpoint.Close)
	t.Cleanup(endpoint.CloseClientConnections)

	account, err := url.Parse(c.given["COSMOS_CONNECTION__accountEndpoint"])
	require.NoError(t, err)
	c.account = "https://" + account.Hostname()
	behind := map[string]http.Handler{
		account.Hostname(): only(s.cosmos.Server, c.account, func(r *http.Request) string {
			text, _ := url.QueryUnescape(r.Header.Get("Authorization"))
			return strings.TrimPrefix(text, "type=aad&ver=1.0&sig=")
		}),
		c.given["AzureWebJobsStorage__accountName"] + ".blob.core.windows.net": only(signing(t, blobs), storage,
			func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }),
	}
	authority, front := serveTLS(t, behind)
	c.env = []string{
		"SSL_CERT_FILE=" + authority, "HTTPS_PROXY=" + proxyTo(t, front, behind),
		"IDENTITY_ENDPOINT=" + endpoint.URL + "/msi/token",
	}
	return c
}

// only lets requests with a token for the resource pass.
func only(service http.Handler, resource string, tokenOf func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !takes(tokenOf(r), resource) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		service.ServeHTTP(w, r)
	})
}

// signing passes requests on to Azurite, whose own tokens are others, with a signature in the address.
func signing(t *testing.T, blobs *azurite.Server) http.Handler {
	t.Helper()
	client, err := azblob.NewClientFromConnectionString(blobs.ConnectionString(), nil)
	require.NoError(t, err)
	signed, err := client.ServiceClient().GetSASURL(
		sas.AccountResourceTypes{Service: true, Container: true, Object: true},
		sas.AccountPermissions{Read: true, Write: true, Delete: true, List: true, Create: true},
		time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	to, err := url.Parse(signed)
	require.NoError(t, err)
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.RawQuery = strings.TrimPrefix(r.Out.URL.RawQuery+"&"+to.RawQuery, "&")
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
		r.Out.URL.Path = strings.TrimRight(to.Path, "/") + r.In.URL.Path
		r.Out.URL.RawPath = ""
		r.Out.Header.Del("Authorization")
	}}
}

// serveTLS serves the handlers by their host names. authority is the file of the certificate.
func serveTLS(t *testing.T, by map[string]http.Handler) (authority, address string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: slices.Collect(maps.Keys(by)), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		by[host].ServeHTTP(w, r)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	authority = filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.WriteFile(authority,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600))
	return authority, server.Listener.Addr().String()
}

// proxyTo starts a proxy for https that leads each of these names to one address.
func proxyTo(t *testing.T, address string, names map[string]http.Handler) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		if r.Method != http.MethodConnect || names[host] == nil {
			t.Errorf("nobody may be asked but the template's accounts: %s %s", r.Method, r.Host)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var d net.Dialer
		server, err := d.DialContext(r.Context(), "tcp", address)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { // either end ends the other
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// start starts host and handler with the template's settings, but for SQL_CONNECTION, because there is no Azure SQL,
// and those of Service Bus, whose emulator takes a key only. It returns the names of the settings that differ.
func (c *cloud) start() (differ []string) {
	c.t.Helper()
	settings := maps.Clone(c.given)
	settings["SQL_CONNECTION"], settings["SERVICEBUS_CONNECTION"] = c.connection, c.bus
	for _, ofIdentity := range []string{"fullyQualifiedNamespace", "credential", "clientId"} {
		delete(settings, "SERVICEBUS_CONNECTION__"+ofIdentity)
	}
	c.hostProcess(hostFile{
		Root: scriptRoot, Settings: settings, Tune: c.tune(), Listen: c.address,
		Env: append(slices.Clone(c.env), "IDENTITY_HEADER="+handlerHeader),
	}, append(slices.Clone(c.env), "IDENTITY_HEADER="+hostHeader)...)
	for name := range settings {
		if settings[name] != c.given[name] {
			differ = append(differ, name)
		}
	}
	for name := range c.given {
		if settings[name] == "" {
			differ = append(differ, name)
		}
	}
	return differ
}

// ask asks the host; an empty text if it does not answer with JSON.
func (c *cloud) ask(path string) string {
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.address+"/api/"+path,
		http.NoBody)
	require.NoError(c.t, err)
	request.Header.Set("X-Functions-Key", functionKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil { // it starts
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// waitCosmos waits until Health says this of Cosmos DB, and how long that took.
func (c *cloud) waitCosmos(want handlers.DependencyHealth) time.Duration {
	c.t.Helper()
	began := time.Now()
	var last handlers.HealthReport
	require.Eventually(c.t, func() bool {
		_ = json.Unmarshal([]byte(c.ask("health")), &last)
		found := last.Dependencies["cosmos"]
		found.Since = time.Time{}
		return found == want
	}, c.patience, 20*time.Millisecond, "Health does not say it")
	return time.Since(began)
}

// Must show: the settings of the template as evaluated start the real handler. A document is committed, and another's
// evidence kept, with tokens of the identity alone, over TLS, by the names that the template gives.
func TestTheTemplatesSettingsStartTheHandler(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 41, Count: 5, Clean: true})
	id, poison := spent(t, 3_000_001)
	c := inCloud(t, azurite.Start(t), append(sample.Lines(docs), 3_000_001)...)
	c.withBus(usualLock)
	require.ElementsMatch(t, []string{
		"SQL_CONNECTION", "SERVICEBUS_CONNECTION", "SERVICEBUS_CONNECTION__fullyQualifiedNamespace",
		"SERVICEBUS_CONNECTION__credential", "SERVICEBUS_CONNECTION__clientId",
	}, c.start(), "these and no others may differ from what the template writes")
	c.submit(jsons(docs)...)
	c.waitUntilQuiet(len(docs))
	c.requireExact(docs)
	c.submit(poison)
	require.Eventually(t, func() bool { return c.state(id)["status"] == "failed" }, c.patience, 20*time.Millisecond)
	require.ElementsMatch(t, []string{c.account, storage}, slices.Collect(maps.Keys(c.identity.tokens())))
	require.NotContains(t, c.ask("health")+c.ask("ops/v1/status"), "marker")
}

// Must show: an identity that gives no token, at the start or in the middle of a drain, is infrastructure. Health and
// status name it, no document is charged for it, and when there are tokens again everything is committed.
func TestAnIdentityWithoutTokensIsInfrastructure(t *testing.T) {
	t.Parallel()
	const short = 4 * time.Second
	blobs := azurite.Start(t)
	for name, row := range map[string]struct {
		fault, code string
		// running says that tokens come at first, and end in the middle of a drain.
		running bool
	}{
		"another client id":      {fault: otherClient, code: "identity"},
		"a silent endpoint":      {fault: silentEnd, code: "timeout"},
		"expiry, and silence":    {fault: silentEnd, code: "timeout", running: true},
		"expiry, and new tokens": {running: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for deadlines
			docs := sample.Generate(sample.Options{Seed: 42, Count: 40, Clean: true})
			c := inCloud(t, blobs, sample.Lines(docs)...)
			maps.Copy(c.given, off("BatchManager", "BatchWorker", "BatchDeadLetter", "RunDeadLetter"))
			c.bus = servicebus.ConnectionString("127.0.0.1:9") // nothing listens there, and nothing connects
			first := 0
			if row.running {
				c.identity.meet("", short)
				c.start()
				first = 20
				c.submit(jsons(docs[:first])...)
				c.waitUntilQuiet(first)
				c.identity.meet(row.fault, short)
				before := c.identity.tokens()[c.account]
				require.Eventually(t, func() bool {
					return row.fault != "" || c.identity.tokens()[c.account] > before
				}, patience, 20*time.Millisecond)
			} else {
				c.identity.meet(row.fault, short)
				c.start()
			}
			c.submit(jsons(docs[first:])...)
			if row.fault != "" {
				failing := handlers.DependencyHealth{State: "failing", Kind: "infrastructure", Code: row.code}
				took := c.waitCosmos(failing)
				t.Logf("Health says %s after %s", row.code, took.Round(time.Millisecond))
				require.Less(t, took, 2*time.Minute, "the timer's tick is five minutes")
				require.Contains(t, c.ask("ops/v1/status"), `"code":"`+row.code+`"`)
				c.identity.meet("", short)
			}
			c.waitUntilQuiet(len(docs))
			c.requireExact(docs)
			requireWrittenOnce(t, c.stack, docs)
			c.requireUncounted()
			c.waitCosmos(handlers.DependencyHealth{State: "ok"})
		})
	}
}
