package config

import (
	"fmt"
	"net/url"
	"strings"
)

// Blob locates the storage for evidence: by Connection, or by ServiceURI and an identity.
type Blob struct {
	Connection           Secret
	ServiceURI, ClientID string
}

// The host's own storage in each form that the host knows. It replaces a missing BLOB_CONNECTION.
const (
	hostStorage        = "AzureWebJobsStorage"
	hostStorageURI     = hostStorage + "__blobServiceUri"
	hostStorageAccount = hostStorage + "__accountName"
	hostStorageClient  = hostStorage + "__clientId"
)

// blobOf gives the storage that the settings name: ours, else the host's.
func blobOf(get lookup) Blob {
	b := Blob{Connection: Secret(get(BlobConnection)), ServiceURI: get(BlobServiceURI), ClientID: get(BlobClientID)}
	if b.Connection != "" || b.ServiceURI != "" {
		return b
	}
	if b.Connection = Secret(get(hostStorage)); b.Connection != "" {
		return b
	}
	b.ServiceURI, b.ClientID = get(hostStorageURI), get(hostStorageClient)
	if account := get(hostStorageAccount); b.ServiceURI == "" && account != "" {
		b.ServiceURI = "https://" + account + ".blob.core.windows.net/"
	}
	return b
}

// checkNoBlob looks at what takes the place of BLOB_CONNECTION.
func checkNoBlob(s lookup) (Problem, bool) {
	b := blobOf(s)
	switch {
	case b.Connection != "":
		expected, found := checkBlobForm(b.Connection.Reveal())
		return Problem{hostStorage, expected, found, false}, expected != ""
	case b.ServiceURI == "":
		return Problem{
			BlobConnection, "a value here, in " + BlobServiceURI + " or in " + hostStorage,
			"nothing in any of them", false,
		}, true
	}
	return Problem{}, false
}

func checkBlob(value string, s lookup) (string, string) {
	if s(BlobServiceURI) != "" {
		return "this or " + BlobServiceURI + ", not both", "both"
	}
	return checkBlobForm(value)
}

// checkBlobForm checks the form only; internal/blob parses it.
func checkBlobForm(value string) (string, string) {
	const form = "AccountName=...;AccountKey=...; or UseDevelopmentStorage=true"
	parts := partsOf(value)
	switch {
	case strings.EqualFold(parts["usedevelopmentstorage"], "true"):
		return "", ""
	case parts["accountname"] == "" && parts["blobendpoint"] == "":
		return form, fmt.Sprintf("a text of %d characters without AccountName and BlobEndpoint", len(value))
	case parts["accountkey"] == "" && parts["sharedaccesssignature"] == "":
		return form, fmt.Sprintf("a text of %d characters without AccountKey and SharedAccessSignature", len(value))
	}
	return "", ""
}

// checkBlobURI refuses a signature in the address: the setting is not secret, and an identity needs no signature.
func checkBlobURI(value string, _ lookup) (string, string) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "an address such as https://NAME.blob.core.windows.net/",
			fmt.Sprintf("a text of %d characters", len(value))
	}
	return "", ""
}

func checkBlobClientID(_ string, s lookup) (string, string) {
	if s(BlobServiceURI) == "" {
		return BlobServiceURI + " beside it", "this setting alone"
	}
	return "", ""
}
