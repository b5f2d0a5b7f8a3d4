package inmem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
)

var _ ops.EvidenceStore = (*Evidence)(nil)

// FilesBelow implements ops.EvidenceStore.
func (e *Evidence) FilesBelow(
	ctx context.Context, folder, at string,
) (page []ops.EvidenceFile, next string, err error) {
	if err := commit.CheckEvidenceName(folder); err != nil {
		return nil, "", err
	}
	if err := ended(ctx, "inmem: files below"); err != nil {
		return nil, "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	names, next := e.page(folder, at)
	for _, name := range names {
		page = append(page, e.file(name))
	}
	return page, next, nil
}

// page is the next names in a folder. It has ten, so that use cases meet many pages, and folders that two pages divide.
func (e *Evidence) page(folder, at string) (names []string, next string) {
	const looked = 10
	names = e.under(folder + "/")
	first, _ := slices.BinarySearch(names, at)
	if first < len(names) && names[first] == at {
		first++
	}
	names = names[first:]
	if len(names) > looked {
		names = names[:looked]
		next = names[looked-1]
	}
	return names, next
}

// under lists the names that begin with prefix, sorted.
func (e *Evidence) under(prefix string) []string {
	var names []string
	for name := range e.files {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Put stores a file over an earlier one, as another program does.
func (e *Evidence) Put(name string, content []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.files[name], e.times[name] = slices.Clone(content), e.now().UTC().Truncate(time.Second)
}

// Remove deletes a folder, as a rule of the storage account does.
func (e *Evidence) Remove(folder string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range e.under(folder + "/") {
		delete(e.files, name)
		delete(e.times, name)
	}
}

// file describes a file under its whole name.
func (e *Evidence) file(name string) ops.EvidenceFile {
	sum := sha256.Sum256(e.files[name])
	return ops.EvidenceFile{
		Name: name, Size: int64(len(e.files[name])), ETag: hex.EncodeToString(sum[:8]), At: e.times[name],
	}
}

// Place implements ops.EvidenceStore.
func (e *Evidence) Place() ops.EvidencePlace {
	return ops.EvidencePlace{Account: "https://memory.example/", Container: "sqlwriter", Prefix: "web"}
}
