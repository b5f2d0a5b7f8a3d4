package blob

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
)

var (
	_ reconcile.Evidence = (*Store)(nil)
	_ ops.EvidenceStore  = (*Store)(nil)
)

// listPage is the number of files in a page of a listing; the service gives at most 5,000.
const listPage = 1000

// Episodes implements reconcile.Evidence. A page covers up to 1,000 files, and its position is the service's marker. A page may end
// between the files of a folder: only metadata.json counts. Names that no evidence has are left out.
func (s *Store) Episodes(ctx context.Context, at string) (page []reconcile.Episode, next string, err error) {
	files, next, err := s.list(ctx, commit.EvidenceRoot+"/", at)
	if err != nil {
		return nil, "", err
	}
	page, err = s.episodes(ctx, files)
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// Newest implements reconcile.Evidence. It looks into commit.EvidenceFoldersOf, which costs one listing, or two where the first has none.
func (s *Store) Newest(ctx context.Context, d invoice.Document) (newest reconcile.Episode, found bool, err error) {
	for _, folder := range commit.EvidenceFoldersOf(d) {
		err := s.listAll(ctx, folder+"/", func(files []file) error {
			for _, f := range files {
				name, ok := commit.ReadEvidenceName(f.name)
				e := reconcile.Episode{DocumentID: d.ID, Folder: name.Folder, At: f.at}
				if ok && name.File == commit.EvidenceMetadata && (!found || e.After(newest)) {
					newest, found = e, true
				}
			}
			return nil
		})
		if err != nil || found {
			return newest, found, err
		}
	}
	return reconcile.Episode{}, false, nil
}

// KeepReport implements reconcile.Evidence.
func (s *Store) KeepReport(ctx context.Context, name string, content []byte, contentType string) error {
	full := "reports/" + s.prefix + name
	if err := commit.CheckEvidenceName(full); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx, s.timeouts.Keep)
	defer cancel()
	put := func() error {
		_, err := s.client.NewBlockBlobClient(full).UploadBuffer(ctx, content, &blockblob.UploadBufferOptions{
			HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr(contentType)},
		})
		return translated(operation{"blob: keep report", onContainer}, err)
	}
	return s.inContainer(ctx, put)
}

// episodes gives the complete episodes among files. Where a name has only the beginning of an id, it reads the metadata.
func (s *Store) episodes(ctx context.Context, files []file) (found []reconcile.Episode, err error) {
	for _, f := range files {
		name, ok := commit.ReadEvidenceName(f.name)
		if !ok || name.File != commit.EvidenceMetadata {
			continue
		}
		if name.DocumentID == "" {
			metadata, err := s.Read(ctx, f.name)
			if fault.Has(err, fault.Gone) {
				continue // removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			if name.DocumentID = commit.EvidenceID(metadata); name.DocumentID == "" {
				continue // another program wrote it
			}
		}
		found = append(found, reconcile.Episode{DocumentID: name.DocumentID, Folder: name.Folder, At: f.at})
	}
	return found, nil
}

// FilesBelow implements ops.EvidenceStore. A page has up to 1,000 files, and its position is the service's marker.
func (s *Store) FilesBelow(ctx context.Context, folder, at string) (page []ops.EvidenceFile, next string, err error) {
	if err := commit.CheckEvidenceName(folder); err != nil {
		return nil, "", err
	}
	files, next, err := s.list(ctx, folder+"/", at)
	for _, f := range files {
		page = append(page, f.evidence())
	}
	return page, next, err
}

// Place implements ops.EvidenceStore. The client's address may have a signature in its query.
func (s *Store) Place() ops.EvidencePlace {
	address, _, _ := strings.Cut(s.client.URL(), "?")
	account, name := path.Split(strings.TrimRight(address, "/"))
	return ops.EvidencePlace{Account: account, Container: name, Prefix: strings.TrimRight(s.prefix, "/")}
}

// file is a file in a listing: its name within the environment, and when it was stored.
type file struct {
	name string
	at   time.Time
	etag string
	size int64
}

func (f file) evidence() ops.EvidenceFile {
	return ops.EvidenceFile{Name: f.name, Size: f.size, ETag: f.etag, At: f.at}
}

// listAll visits the files whose names begin with prefix, page by page, in the order of their names.
func (s *Store) listAll(ctx context.Context, prefix string, visit func([]file) error) error {
	for at := ""; ; {
		files, next, err := s.list(ctx, prefix, at)
		if err == nil {
			err = visit(files)
		}
		if err != nil || next == "" {
			return err
		}
		at = next
	}
}

// list gives a page of the files whose names begin with prefix, and the marker of the next page. "" begins, and ends. A container that is
// missing has no files: Keep makes it.
func (s *Store) list(ctx context.Context, prefix, at string) (files []file, next string, err error) {
	ctx, cancel := bounded(ctx, s.timeouts.List)
	defer cancel()
	options := &container.ListBlobsFlatOptions{Prefix: to.Ptr(s.prefix + prefix), MaxResults: to.Ptr[int32](listPage)}
	if at != "" {
		options.Marker = &at
	}
	page, err := s.client.NewListBlobsFlatPager(options).NextPage(ctx)
	if lacksContainer(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", translate(operation{"blob: list", onContainer}, err)
	}
	for _, item := range page.Segment.BlobItems {
		f := file{name: strings.TrimPrefix(*item.Name, s.prefix), at: item.Properties.LastModified.UTC()}
		if p := item.Properties; p.ETag != nil && p.ContentLength != nil { // the service always gives both
			f.etag, f.size = strings.Trim(string(*p.ETag), `"`), *p.ContentLength
		}
		files = append(files, f)
	}
	if page.NextMarker != nil {
		next = *page.NextMarker
	}
	return files, next, nil
}
