package commit

import (
	"net/url"
	"path"
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// CheckEvidenceName validates a name for Evidence. Errors by kind: internal, code "bug".
func CheckEvidenceName(name string) error {
	const op, code = "commit: name of evidence", fault.CodeBug
	if name == "" || len(name) > MaxEvidenceName {
		return fault.New(fault.Internal, op, code, "a name of %d characters: want 1 to %d", len(name), MaxEvidenceName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasSuffix(part, ".") {
			return fault.New(fault.Internal, op, code, "a part is empty or ends with a dot")
		}
	}
	if strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
			!strings.ContainsRune("-_.~%/", c)
	}) {
		return fault.New(fault.Internal, op, code, "characters other than letters, digits and -_.~%%/")
	}
	return nil
}

// The folders and files of evidence: failed/{main line}/{escaped id}/{when it began to fail}-{content hash}/{file}.
const (
	// EvidenceRoot is the folder of all evidence of an environment.
	EvidenceRoot = "failed"
	// EvidenceOriginal is the document before it was marked, EvidenceError its PoisonError.
	EvidenceOriginal = "original.json"
	EvidenceError    = "error.json"
	// EvidenceMetadata is its PoisonMetadata. It is stored last, so its presence proves that the evidence is complete.
	EvidenceMetadata = "metadata.json"
	unknownMain      = "unknown"
)

// EvidenceFile is the name of a file of evidence, read.
type EvidenceFile struct {
	// Folder is the EvidenceFolder, File the name in it.
	Folder, File string
	// Main is the main line's id; 0 when it could not be read from the document.
	Main int64
	// DocumentID is empty where the name has only the beginning of the id. The metadata has it (EvidenceID).
	DocumentID string
}

// ReadEvidenceName reads the name of a file; false when it is not the name of a file of evidence.
func ReadEvidenceName(name string) (f EvidenceFile, ok bool) {
	const parts = 5
	p := strings.Split(name, "/")
	if len(p) != parts || p[0] != EvidenceRoot || p[1] == "" || p[2] == "" || p[4] == "" ||
		!strings.Contains(p[3], "-") {
		return EvidenceFile{}, false
	}
	f = EvidenceFile{Folder: path.Dir(name), File: p[4]}
	f.Main, _ = strconv.ParseInt(p[1], 10, 64) // unknownMain is 0
	if len(p[2]) > maxEscapedID {
		return f, true
	}
	id, err := url.PathUnescape(p[2])
	if err != nil {
		return EvidenceFile{}, false
	}
	f.DocumentID = id
	return f, true
}

// CheckEvidenceFolder validates the name of a folder as EvidenceFolder makes it. Errors by kind: internal, code "bug".
func CheckEvidenceFolder(folder string) error {
	if f, ok := ReadEvidenceName(folder + "/" + EvidenceMetadata); !ok || f.Folder != folder {
		return fault.New(fault.Internal, "commit: name of evidence", fault.CodeBug, "not a folder of evidence")
	}
	return nil
}

// EvidenceFoldersOf gives the folders that have the evidence of a document's failures: that of its main line, then that
// of content whose main line could not be read. Evidence of content with another main line is not in them.
func EvidenceFoldersOf(d invoice.Document) []string {
	unread := d
	unread.Main = 0
	folders := []string{evidenceParent(d)}
	if d.Main > 0 {
		folders = append(folders, evidenceParent(unread))
	}
	return folders
}

// Restored is sql_writer of a document that is put back from its evidence: failed, as it was recorded when the evidence
// was stored. s is that of original.json, which is from before.
func (e PoisonError) Restored(s invoice.State) invoice.State {
	s.Status, s.RetryCount, s.RetryAfter, s.Postponed = invoice.Failed, e.RetryCount, 0, false
	s.Outcome, s.SupersededBy, s.CommittedAt = "", "", ""
	s.FailedAt, s.LastErrorAt, s.Attempts = e.FailedAt, e.FailedAt, e.Attempts
	s.LastErrorKind, s.LastErrorCode, s.LastError, s.Error = e.Kind, e.Code, e.LastError, e.LastError
	return s
}
