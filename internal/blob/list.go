package blob

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
)

var _ ops.EvidenceStore = (*Store)(nil)

// listPage is the number of files in a page of a listing; the service gives at most 5,000.
const listPage = 1000

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

// list gives a page of the files whose names begin with prefix, and the marker of the next page. "" begins, and ends. A
// container that is missing has no files: Keep makes it.
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
