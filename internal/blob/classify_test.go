package blob

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// fake gives every request the same answer, for answers that no working server gives.
type fake struct {
	answer http.HandlerFunc
	hits   atomic.Int64
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.hits.Add(1)
	_, _ = io.Copy(io.Discard, r.Body)
	f.answer(w, r)
}

func startFake(t *testing.T, timeouts Timeouts, answer http.HandlerFunc) (*fake, *Store) {
	t.Helper()
	f := &fake{answer: answer}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, openOn(t, "BlobEndpoint="+server.URL+"/acct;AccountName=acct;AccountKey="+secret, "sqlwriter", timeouts)
}

// once is a timeout without room for a retry: every request is made once.
func once() Timeouts { return Timeouts{Keep: maxWait, Read: maxWait, Ping: maxWait} }

// TestEveryAnswerHasItsKind sends each status through the real SDK to a keep, a read and a ping.
func TestEveryAnswerHasItsKind(t *testing.T) {
	const (
		infra = fault.Infrastructure
		there = fault.Kind("") // no error: the file exists
	)
	for _, c := range []struct {
		status int
		code   string
		// keep is the meaning for a keep, others for a read and a ping; empty means the same.
		keep, others fault.Kind
		condition    fault.Condition
	}{
		{400, "InvalidUri", infra, "", ""},
		{401, "NoAuthenticationInformation", infra, "", ""},
		{403, "AuthenticationFailed", infra, "", ""},
		{403, "AuthorizationFailure", infra, "", ""},
		{403, "AuthorizationPermissionMismatch", infra, "", ""},
		{403, "AccountIsDisabled", infra, "", ""},
		{403, "UnauthorizedBlobOverwrite", there, infra, ""},
		{403, "", infra, "", ""},
		{404, "ContainerNotFound", infra, "", ""},
		{404, "ResourceNotFound", infra, "", ""},
		{404, "", infra, "", ""},
		{408, "", infra, "", ""},
		{409, "BlobAlreadyExists", there, infra, ""},
		{409, "BlobImmutableDueToPolicy", there, infra, ""},
		{409, "BlobImmutableDueToLegalHold", there, infra, ""},
		{409, "BlobArchived", there, infra, ""},
		{409, "BlobBeingRehydrated", there, infra, ""},
		{409, "ContainerBeingDeleted", infra, "", ""},
		{409, "ContainerDisabled", infra, "", ""},
		{409, "AccountBeingCreated", infra, "", ""},
		{409, "", infra, "", ""},
		{412, "ConditionNotMet", there, infra, ""},
		{412, "LeaseIdMissing", there, infra, ""},
		{412, "", there, infra, ""},
		{413, "RequestBodyTooLarge", infra, "", ""},
		{418, "", infra, "", ""},
		{429, "TooManyRequests", fault.Throttled, "", ""},
		{500, "OperationTimedOut", infra, "", ""},
		{500, "InternalError", infra, "", ""},
		{502, "", infra, "", ""},
		{503, "ServerBusy", fault.Throttled, "", ""},
		{503, "", infra, "", ""},
		{504, "", infra, "", ""},
		{507, "", fault.Quota, "", ""},
		{307, "", infra, "", ""},
	} {
		t.Run(fmt.Sprintf("%d_%s", c.status, c.code), func(t *testing.T) {
			t.Parallel()
			f, s := startFake(t, once(), func(w http.ResponseWriter, _ *http.Request) {
				if c.code != "" {
					w.Header().Set("x-ms-error-code", c.code)
				}
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("x-ms-request-id", "req-1")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "<Error><Message>PAYLOAD</Message></Error>")
			})
			code := fmt.Sprint(c.status)
			if c.code != "" {
				code += "/" + c.code
			}
			_, readErr := s.Read(t.Context(), "a")
			require.EqualValues(t, 1, f.hits.Load(), "no wait fits into the deadline, so none is begun")
			for name, err := range map[string]error{
				"keep": s.Keep(t.Context(), "a", []byte("x")), "read": readErr, "ping": s.Ping(t.Context()),
			} {
				kind := c.keep
				if name != "keep" && c.others != "" {
					kind = c.others
				}
				if kind == there {
					require.NoError(t, err, name)
					continue
				}
				e := fault.As(err)
				require.NotNil(t, e, "%s: %v", name, err)
				require.Equal(t, kind, e.Kind, name)
				require.Equal(t, c.condition, e.Condition, name)
				require.Equal(t, code, e.Code, name)
				if name == "read" || c.code != "ContainerNotFound" {
					require.Equal(t, "blob: "+name, e.Op)
				} else {
					require.Equal(t, "blob: make container", e.Op, "tried, and answered the same")
				}
				require.NotEmpty(t, e.Reason)
				require.Contains(t, err.Error(), "req-1", "the service's own id of the call helps its support")
				require.NotContains(t, err.Error(), "PAYLOAD")
				require.NotContains(t, err.Error(), "\n")
				var answer *azcore.ResponseError
				require.ErrorAs(t, err, &answer, "the cause stays reachable")
			}
		})
	}
}

func TestOnlyAReadFindsAFileGone(t *testing.T) {
	_, s := startFake(t, once(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-ms-error-code", "BlobNotFound")
		w.WriteHeader(http.StatusNotFound)
	})
	_, err := s.Read(t.Context(), "a")
	require.Equal(t, fault.Document, fault.KindOf(err))
	require.True(t, fault.Has(err, fault.Gone))
	require.Equal(t, fault.Infrastructure, fault.KindOf(s.Keep(t.Context(), "a", nil)))
	require.Equal(t, fault.Infrastructure, fault.KindOf(s.Ping(t.Context())))
}

func TestOnlyAReadBlamesAFile(t *testing.T) {
	for _, r := range answers() {
		if r.About != onFile {
			require.Contains(t, []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota},
				r.Kind, "what the port allows")
		}
	}
	for _, r := range existsRules() {
		require.NotEmpty(t, r.reason)
		require.NotEmpty(t, r.source)
	}
}

// TestErrorsKeepSignaturesAndFilesToThemselves checks the text that an operator reads. DO name the host and the
// system's error. DON'T show the signature, the file's name (it contains a document's id) or its content.
func TestErrorsKeepSignaturesAndFilesToThemselves(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	s := openOn(t, "BlobEndpoint=http://"+address+"/acct;SharedAccessSignature=sv=1&sig=SIGNATURE", "sqlwriter", once())
	_, readErr := s.Read(t.Context(), "PRIVATE-ID")
	for _, err := range []error{s.Keep(t.Context(), "PRIVATE-ID", []byte("CONTENT")), readErr, s.Ping(t.Context())} {
		require.Equal(t, "refused", fault.CodeOf(err))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Contains(t, err.Error(), address)
		requireNoSecret(t, err, "SIGNATURE", "PRIVATE-ID", "CONTENT")
	}
}

func TestRetryAfterIsHandedOn(t *testing.T) {
	for header, value := range map[string]string{
		"x-ms-retry-after-ms": "2750", "retry-after-ms": "2750", "Retry-After": "3",
	} {
		f, s := startFake(t, Timeouts{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.Header().Set("x-ms-error-code", "ServerBusy")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		want := 2750 * time.Millisecond
		if header == "Retry-After" {
			want = 3 * time.Second
		}
		e := fault.As(s.Keep(t.Context(), "a", nil))
		require.NotNil(t, e)
		require.Equal(t, fault.Throttled, e.Kind)
		require.Equal(t, want, e.RetryAfter)
		require.EqualValues(t, 1, f.hits.Load(), "a wait above 2 s is not waited for")
	}
}

func TestAnAccountThatRecoversIsWaitedFor(t *testing.T) {
	for _, status := range []int{408, 429, 500, 502, 503, 504} {
		var f *fake
		f, s := startFake(t, Timeouts{Keep: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
			if f.hits.Load() <= 2 {
				w.Header().Set("x-ms-retry-after-ms", "1")
				w.WriteHeader(status)
				return
			}
			w.WriteHeader(http.StatusCreated)
		})
		require.NoError(t, s.Keep(t.Context(), "a", []byte("x")), status)
		require.EqualValues(t, 3, f.hits.Load(), status)
	}
}

// Each page of a listing has a bound of its own: an operator's search reads many.
func TestAListingThatIsNeverAnsweredEnds(t *testing.T) {
	_, s := startFake(t, Timeouts{List: 50 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, _, err := s.FilesBelow(ctx, "failed", "")
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.NoError(t, ctx.Err())
}

func TestHalfAFileIsNoFile(t *testing.T) {
	_, s := startFake(t, once(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "the beginning")
	})
	content, err := s.Read(t.Context(), "a")
	require.Equal(t, "eof", fault.CodeOf(err), "%v", err)
	require.Nil(t, content)
}

func TestRepetitionsEnd(t *testing.T) {
	f, s := startFake(t, Timeouts{Keep: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-ms-retry-after-ms", "1")
		w.WriteHeader(http.StatusInternalServerError)
	})
	require.Equal(t, "500", fault.CodeOf(s.Keep(t.Context(), "a", nil)))
	require.EqualValues(t, 4, f.hits.Load())
}

func TestAServerWithoutATrustedCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	s := openOn(t, "BlobEndpoint="+server.URL+"/acct;AccountName=acct;AccountKey="+secret, "sqlwriter", once())
	require.Equal(t, "tls", fault.CodeOf(s.Ping(t.Context())))
	plain := openOn(t,
		"BlobEndpoint="+strings.Replace(server.URL, "https", "http", 1)+"/acct;AccountName=acct;AccountKey="+
			secret, "sqlwriter", once())
	require.Equal(t, fault.Infrastructure, fault.KindOf(plain.Ping(t.Context())))
}
