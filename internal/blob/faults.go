package blob

import "sqlwriter/internal/fault"

// Faults gives the table of errors for docs/errors.md. Answers that mean "the file exists" are not errors and have no
// row.
func Faults() []fault.Row { return service().Faults() }

// answers are the rows for the service's statuses and error codes; the first match decides. No answer blames a
// document, because evidence that cannot be kept is never the document's fault (commit.Evidence).
func answers() []fault.Row {
	const infra = fault.Infrastructure
	rows := []fault.Row{
		{
			Code: "400/*", Kind: infra,
			Reason: "the service does not accept our request; no document is to blame", Source: commonCodes,
		},
		{Code: "401/*", Kind: infra, Reason: "no token, or one that is not accepted", Source: commonCodes},
		{
			Code: "403/AuthenticationFailed", Kind: infra,
			Reason: "the key, signature or token is not accepted, or this machine's clock is off", Source: commonCodes,
		},
		{
			Code: "403/AuthorizationFailure", Kind: infra,
			Reason: "not allowed: firewall or network rule of the account, or a signature without this right",
			Source: blobCodes,
		},
		{
			Code: "403/AuthorizationPermissionMismatch", Kind: infra,
			Reason: "the identity lacks the role Storage Blob Data Contributor, or the signature this right",
			Source: "docs/facts.md F88",
		},
		{Code: "403/AccountIsDisabled", Kind: infra, Reason: "the account is disabled", Source: commonCodes},
		{
			Code: "403/*", Kind: infra,
			Reason: "not allowed: key, role, signature, firewall or state of the account", Source: commonCodes,
		},
		{
			Code: "404/BlobNotFound", About: onFile, Kind: fault.Document, Condition: fault.Gone,
			Reason: "no such file", Source: blobCodes,
		},
		{Code: "404/ContainerNotFound", Kind: infra, Reason: "the container does not exist", Source: blobCodes},
		{Code: "404/*", Kind: infra, Reason: "the account or container is not there", Source: commonCodes},
		{
			Code: "408/*", Kind: infra, Reason: "the service took too long; the file may have been stored",
			Source: "docs/facts.md F85",
		},
		{
			Code: "409/ContainerBeingDeleted", Kind: infra,
			Reason: "a container of this name is being deleted, which takes half a minute or longer", Source: blobCodes,
		},
		{Code: "409/ContainerDisabled", Kind: infra, Reason: "the container is disabled", Source: blobCodes},
		{Code: "409/AccountBeingCreated", Kind: infra, Reason: "the account is still being made", Source: commonCodes},
		{
			Code: "409/*", Kind: infra,
			Reason: "the account, container or file is in a state that does not allow this", Source: commonCodes,
		},
		{
			Code: "413/*", Kind: infra,
			Reason: "larger than one request may be, which no document is: a proxy before the service has a lower limit", Source: commonCodes,
		},
		{Code: "429/*", Kind: fault.Throttled, Reason: "the account asks to slow down", Source: "docs/facts.md F88"},
		{
			Code: "503/ServerBusy", Kind: fault.Throttled,
			Reason: "the account or a part of it is over its limits", Source: commonCodes,
		},
		{
			Code: "507/*", Kind: fault.Quota,
			Reason: "there is no room (the service itself documents no such answer)", Source: "RFC 4918",
		},
		{
			Code: "500-599", Kind: infra,
			Reason: "the service failed; the file may have been stored", Source: commonCodes,
		},
		{
			Code: "100-999", Kind: infra, Reason: "the service answered with a status we do not know",
			Source: "docs/requirements.md R34", Rest: true,
		},
	}
	for i, r := range rows {
		if r.Condition == fault.NoCondition {
			rows[i].Own = evidenceWaits()
		}
	}
	return rows
}

// evidenceWaits is the consequence when evidence cannot be kept: no line may be marked before it is kept (promise G7).
func evidenceWaits() fault.Consequence {
	return fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the poison message waits: the document stays retry_scheduled and nothing is marked; the recovery timer tries again after 2 min",
	}
}
