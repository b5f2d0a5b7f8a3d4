package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

const (
	// filesAtOnce bounds the files of evidence that are read side by side.
	filesAtOnce = 16
	// evidenceWithin bounds the listing of one request. The last page and its files may take some seconds more; a
	// client waits for 60 s.
	evidenceWithin = 30 * time.Second
	// maxEpisodes bounds the episodes that are shown.
	maxEpisodes = 200
	// maxContent bounds a file that is given, in bytes. A document of Cosmos DB has 2 MB at most.
	maxContent = 8 << 20
)

// EvidenceFiles are the names of the files that EvidenceGet gives.
func EvidenceFiles() []string {
	return []string{commit.EvidenceOriginal, commit.EvidenceError, commit.EvidenceMetadata}
}

// EvidenceOfDocument asks for the evidence of a document.
type EvidenceOfDocument struct {
	// ID is the document's id. It may be deleted.
	ID string `json:"id"`
	// Line is its main line, so that only this line's folders are searched; 0 takes it from the document.
	Line int64 `json:"line,omitempty"`
}

// DocumentEvidence is the evidence of a document.
type DocumentEvidence struct {
	Document string        `json:"document"`
	Place    EvidencePlace `json:"place"`
	// Searched says which folders were searched. More says that it ended early, because the request would have become
	// too long.
	Searched string `json:"searched"`
	More     bool   `json:"more,omitempty"`
	// Found counts the episodes. Episodes are the newest 200, newest first.
	Found    int               `json:"found"`
	Episodes []EvidenceEpisode `json:"episodes"`
}

// EvidenceEpisode is the evidence of one failure.
type EvidenceEpisode struct {
	// Folder is the folder in the environment, Path that in the container.
	Folder string `json:"folder"`
	Path   string `json:"path"`
	// At is when it was stored. Line is the main line then; 0 when it was unreadable.
	At   time.Time `json:"at"`
	Line int64     `json:"line"`
	// Incomplete says that there is no metadata.json: it is being stored, or what stored it was ended.
	Incomplete bool           `json:"incomplete,omitempty"`
	Files      []EvidenceFile `json:"files"`
	// Failed is the last failure, after Retries retries, and Attempts are the last ones, oldest first: what error.json
	// has. RunID or InvocationID tried it last. All are empty without the file.
	Failed   *Tried  `json:"failed,omitempty"`
	Retries  int     `json:"retries"`
	Attempts []Tried `json:"attempts,omitempty"`
	RunID    string  `json:"run_id,omitempty"`
	// InvocationID is the host's id of the function's invocation.
	InvocationID string `json:"invocation_id,omitempty"`
	// Metadata is what metadata.json has; nil if it is missing or unreadable.
	Metadata *commit.PoisonMetadata `json:"metadata,omitempty"`
	// Problems say what is wrong with the files.
	Problems []string `json:"problems,omitempty"`

	failed *commit.PoisonError
}

// EvidenceFileQuery asks for a file of evidence.
type EvidenceFileQuery struct {
	EvidenceOfDocument

	// File is one of EvidenceFiles; empty means original.json.
	File string `json:"file,omitempty"`
	// Folder is EvidenceEpisode.Folder; empty means that of the newest complete episode.
	Folder string `json:"folder,omitempty"`
}

// EvidenceContent is a file of evidence.
type EvidenceContent struct {
	Document string `json:"document"`
	Folder   string `json:"folder"`
	File     string `json:"file"`
	// Content is the file, byte by byte.
	Content []byte `json:"content"`
}

// EvidenceShow returns all evidence of a document, without its content. Errors by kind: *RequestError (usage;
// not_found); infrastructure, throttled.
func (o *Ops) EvidenceShow(ctx context.Context, q EvidenceOfDocument) (DocumentEvidence, error) {
	found, err := o.findEvidence(ctx, q)
	if err != nil {
		return found, err
	}
	if found.Found = len(found.Episodes); found.Found == 0 {
		return found, found.missing()
	}
	found.Episodes = found.Episodes[:min(found.Found, maxEpisodes)]
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	for i := range found.Episodes {
		group.Go(func() error { return o.readEpisode(ctx, q.ID, &found.Episodes[i]) })
	}
	return found, group.Wait()
}

// EvidenceGet returns a file of a document's evidence. Errors by kind: *RequestError (usage; not_found; conflict for a
// file that is too large, and when the newest episode was not found in time); infrastructure, throttled.
func (o *Ops) EvidenceGet(ctx context.Context, q EvidenceFileQuery) (c EvidenceContent, err error) {
	if q.File == "" {
		q.File = commit.EvidenceOriginal
	}
	if !slices.Contains(EvidenceFiles(), q.File) {
		return c,
			refuse(Usage, "file: expected one of %s, found %q", strings.Join(EvidenceFiles(), ", "),
				run.Truncate(q.File, run.MaxKind))
	}
	folder, err := o.evidenceFolder(ctx, q)
	if err != nil {
		return c, err
	}
	c = EvidenceContent{Document: q.ID, Folder: folder, File: q.File}
	c.Content, err = o.p.Evidence.Read(ctx, folder+"/"+q.File)
	switch {
	case fault.Has(err, fault.Gone):
		return EvidenceContent{}, refuse(NotFound, "%s has no %s", folder, q.File)
	case err == nil && len(c.Content) > maxContent:
		return EvidenceContent{},
			refuse(Conflict,
				"%s/%s has %d bytes, more than the %d that are given: read it with a tool of the storage account",
				folder, q.File, len(c.Content), maxContent)
	}
	return c, err
}

// newestEpisode returns a document's newest complete episode; the newest where none is complete.
func (o *Ops) newestEpisode(ctx context.Context, q EvidenceOfDocument) (e EvidenceEpisode, err error) {
	found, err := o.findEvidence(ctx, q)
	switch {
	case err != nil:
		return e, err
	case len(found.Episodes) == 0 || found.More: // a newer one may be in folders that were not searched
		return e, found.missing()
	}
	i := slices.IndexFunc(found.Episodes, func(e EvidenceEpisode) bool { return !e.Incomplete })
	return found.Episodes[max(i, 0)], nil
}

// evidenceFolder returns the folder of a request: the one that it names, else that of the newest episode.
func (o *Ops) evidenceFolder(ctx context.Context, q EvidenceFileQuery) (string, error) {
	if q.Folder == "" {
		e, err := o.newestEpisode(ctx, q.EvidenceOfDocument)
		return e.Folder, err
	}
	if err := checkDocumentID(q.ID); err != nil {
		return "", err
	}
	folder := q.Folder
	if commit.CheckEvidenceFolder(folder) != nil {
		folder = strings.TrimPrefix(folder, o.p.Evidence.Place().Prefix+"/") // as `document why` shows it
	}
	switch {
	case commit.CheckEvidenceFolder(folder) != nil || commit.CheckEvidenceName(folder) != nil:
		return "",
			refuse(Usage, "folder: expected a folder of evidence, as `evidence show` lists it, found %q",
				run.Truncate(q.Folder, run.MaxSubject))
	case path.Base(path.Dir(folder)) != evidenceName(q.ID):
		return "",
			refuse(Usage, "folder: expected a folder of document %q, found one of another document: %q", q.ID,
				run.Truncate(q.Folder, run.MaxSubject))
	}
	return folder, nil
}

// missing is the error when nothing, or not the newest, was found.
func (d DocumentEvidence) missing() error {
	if d.More {
		return refuse(Conflict, "line: expected the main line of document %q: not all folders can be searched in %d s",
			d.Document, int(evidenceWithin.Seconds()))
	}
	return refuse(NotFound, "no evidence of document %q is in %s", d.Document, d.Searched)
}

// evidenceName is the name of a document in the folders of its evidence.
func evidenceName(id string) string { return path.Base(evidenceFolders(id, 0)[0]) }

func evidenceFolders(id string, line int64) []string {
	return commit.EvidenceFoldersOf(
		invoice.Document{ID: id, Main: line, Version: invoice.Version{Key: invoice.Key(id)}})
}

// findEvidence lists the evidence of a document, newest first. The folders of its main line are searched. All folders
// are searched without one, and when the document's own line has none.
func (o *Ops) findEvidence(ctx context.Context, q EvidenceOfDocument) (found DocumentEvidence, err error) {
	if err := checkDocumentID(q.ID); err != nil {
		return found, err
	}
	if q.Line < 0 {
		return found, refuse(Usage, "line: expected the id of a line, found %d", q.Line)
	}
	found = DocumentEvidence{Document: q.ID, Place: o.p.Evidence.Place()}
	line := q.Line
	if line == 0 {
		if line, err = o.mainLine(ctx, q.ID); err != nil {
			return found, err
		}
	}
	late := o.late(evidenceWithin)
	if line > 0 {
		found.Searched = fmt.Sprintf("the folders of line %d and of unknown lines", line)
		if err := o.searchEvidence(ctx, &found, evidenceFolders(q.ID, line), late); err != nil || q.Line > 0 ||
			found.Episodes != nil {
			return found, err
		}
	}
	found.Searched = "any folder"
	return found, o.searchEvidence(ctx, &found, []string{commit.EvidenceRoot}, late)
}

// mainLine is that of the document now; 0 when it does not exist, or names none.
func (o *Ops) mainLine(ctx context.Context, id string) (int64, error) {
	raw, err := o.p.Documents.Read(ctx, id)
	if err != nil && !fault.Has(err, fault.Gone) && fault.CodeOf(err) != commit.CodeIDTwice {
		return 0, err
	}
	doc, err := o.o.Reader.Read(raw, o.o.Now())
	if err != nil {
		return 0, nil //nolint:nilerr // its evidence may have been stored when it was readable
	}
	return doc.Main, nil
}

// late returns a function that reports whether a time is over.
func (o *Ops) late(within time.Duration) func() bool {
	began := o.o.Now()
	return func() bool { return o.o.Now().Sub(began) >= within }
}

// searchEvidence adds the episodes of a document that are in some folders, newest first.
func (o *Ops) searchEvidence(ctx context.Context, found *DocumentEvidence, folders []string, late func() bool) error {
	episodes := map[string]*EvidenceEpisode{}
	for _, folder := range folders {
		for at := ""; ; {
			files, next, err := o.p.Evidence.FilesBelow(ctx, folder, at)
			if err != nil {
				return err
			}
			for _, f := range files {
				addFile(episodes, f, evidenceName(found.Document))
			}
			if at = next; at == "" {
				break
			}
			if found.More = late(); found.More {
				break
			}
		}
	}
	for _, e := range episodes {
		e.Path = found.Place.Prefix + "/" + e.Folder
		found.Episodes = append(found.Episodes, *e)
	}
	slices.SortFunc(found.Episodes, func(a, b EvidenceEpisode) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(path.Base(b.Folder), path.Base(a.Folder))) // At has whole seconds
	})
	return nil
}

// newestFolder gives the folder of the newest complete evidence of a document, with the environment; empty where there
// is none, or no answer in some seconds.
func (o *Ops) newestFolder(ctx context.Context, doc invoice.Document) string {
	ctx, cancel := context.WithTimeout(ctx, ledgerWithin)
	defer cancel()
	found := DocumentEvidence{Document: doc.ID, Place: o.p.Evidence.Place()}
	err := o.searchEvidence(ctx, &found, commit.EvidenceFoldersOf(doc), o.late(ledgerWithin))
	i := slices.IndexFunc(found.Episodes, func(e EvidenceEpisode) bool { return !e.Incomplete })
	if err != nil || i < 0 {
		return ""
	}
	return found.Episodes[i].Path
}

// addFile adds a file to its episode, if it is one of the document whose name in folders is given.
func addFile(episodes map[string]*EvidenceEpisode, f EvidenceFile, name string) {
	const parts = 5 // as commit.ReadEvidenceName; what a person put into a folder below belongs to the episode
	p := strings.SplitN(f.Name, "/", parts)
	if len(p) < parts || p[2] != name {
		return
	}
	read, ok := commit.ReadEvidenceName(path.Join(p[:4]...) + "/" + commit.EvidenceMetadata)
	if !ok {
		return
	}
	e := episodes[read.Folder]
	if e == nil {
		e = &EvidenceEpisode{Folder: read.Folder, Line: read.Main, Incomplete: true}
		episodes[read.Folder] = e
	}
	f.Name = p[4]
	e.Files = append(e.Files, f)
	switch {
	case f.Name == commit.EvidenceMetadata:
		e.Incomplete, e.At = false, f.At
	case e.Incomplete && f.At.After(e.At):
		e.At = f.At
	}
}

// readEpisode reads the files of an episode that are small.
func (o *Ops) readEpisode(ctx context.Context, id string, e *EvidenceEpisode) (err error) {
	e.At = o.in(e.At)
	there := map[string]bool{}
	for i := range e.Files {
		e.Files[i].At = o.in(e.Files[i].At)
		there[e.Files[i].Name] = true
	}
	for _, name := range []string{commit.EvidenceOriginal, commit.EvidenceError} {
		if !there[name] {
			e.Problems = append(e.Problems, missingFile(name))
		}
	}
	if there[commit.EvidenceError] {
		if e.failed, err = readJSON[commit.PoisonError](ctx, o, e.Folder, commit.EvidenceError,
			&e.Problems); err != nil {
			return err
		}
		if f := e.failed; f != nil {
			e.Failed = &Tried{At: o.stamp(f.FailedAt), Kind: f.Kind, Code: f.Code, Error: f.LastError}
			e.Retries, e.Attempts = f.RetryCount, o.tried(f.Attempts)
			e.RunID, e.InvocationID = f.RunID, f.InvocationID
		}
	}
	if there[commit.EvidenceMetadata] {
		if e.Metadata, err = readJSON[commit.PoisonMetadata](ctx, o, e.Folder, commit.EvidenceMetadata,
			&e.Problems); err != nil {
			return err
		}
		if m := e.Metadata; m != nil && m.DocumentID != id {
			e.Problems = append(e.Problems,
				fmt.Sprintf("%s names another document: %q", commit.EvidenceMetadata,
					run.Truncate(m.DocumentID, run.MaxBy)))
		}
	}
	return nil
}

func missingFile(name string) string { return name + " does not exist" }

// readJSON reads a file of evidence. It returns nil and adds a problem for a file that does not exist, or is something
// else.
func readJSON[T any](ctx context.Context, o *Ops, folder, file string, problems *[]string) (*T, error) {
	content, err := o.p.Evidence.Read(ctx, folder+"/"+file)
	if fault.Has(err, fault.Gone) { // removed meanwhile
		*problems = append(*problems, missingFile(file))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var v *T
	if json.Unmarshal(content, &v) != nil || v == nil {
		*problems = append(*problems,
			fmt.Sprintf(
				"%s: expected a JSON object as the app writes it, found something else (%d bytes)", file, len(content)))
		return nil, nil //nolint:nilerr // the problem says it
	}
	return v, nil
}
