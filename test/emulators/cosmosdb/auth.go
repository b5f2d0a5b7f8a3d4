package cosmosdb

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// dateTolerance is how far the date of a signature may be from the clock (REST reference "Access control
// on Azure Cosmos DB resources": 15 minutes).
const dateTolerance = 15 * time.Minute

// authorize checks the signature of a request as that page describes it: HMAC-SHA256 with the account key
// over verb, resource type, resource link and date.
func (s *Server) authorize(req *request) *apiError {
	refuse := func(status int, message string) *apiError { return &apiError{status: status, message: message} }
	header := req.header.Get("Authorization")
	if header == "" {
		return refuse(http.StatusUnauthorized,
			"Required Header authorization is missing. Ensure a valid Authorization token is passed.")
	}
	token, err := url.QueryUnescape(header)
	if err != nil {
		return refuse(http.StatusUnauthorized, "Authorization header doesn't confirm to the required format.")
	}
	// The signature is base64 and may hold '+', which ParseQuery would turn into a blank.
	fields := map[string]string{}
	for part := range strings.SplitSeq(token, "&") {
		name, value, _ := strings.Cut(part, "=")
		fields[name] = value
	}
	switch fields["type"] {
	case "aad":
		if s.opts.AcceptBearer && fields["sig"] != "" {
			return nil
		}
		return refuse(http.StatusUnauthorized, "This emulator does not accept Microsoft Entra tokens unless told to.")
	case "master":
	default:
		return refuse(http.StatusUnauthorized,
			"Authorization header doesn't confirm to the required format: only type=master is known.")
	}
	stamp := req.header.Get("X-Ms-Date")
	if stamp == "" {
		stamp = req.header.Get("Date")
	}
	date, err := http.ParseTime(strings.ToUpper(stamp)) // a client may send it as it signs it, in lower case
	if err != nil {
		return refuse(http.StatusUnauthorized, "The request has no date, or one that is not RFC 1123.")
	}
	want := s.signature(req, stamp)
	if !hmac.Equal([]byte(want), []byte(fields["sig"])) {
		return refuse(http.StatusUnauthorized,
			"The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built as per the protocol.")
	}
	if off := time.Since(date); off > dateTolerance || off < -dateTolerance {
		return refuse(http.StatusForbidden,
			"The authorization token is not valid at the current time: its date is more than 15 minutes off.")
	}
	return nil
}

func (s *Server) signature(req *request, date string) string {
	mac := hmac.New(sha256.New, s.key)
	text := strings.ToLower(req.method) + "\n" + strings.ToLower(req.resourceType) + "\n" + req.resourceLink + "\n" +
		strings.ToLower(date) + "\n\n"
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
