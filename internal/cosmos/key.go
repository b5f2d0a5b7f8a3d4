package cosmos

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// CodePartitionKey is the code of a container whose partition key cannot be used.
const CodePartitionKey = "partition_key"

// partitionKey is the partition key of a container: one to three members of each document. It is read from the
// container's definition and never assumed: under a wrong key a document that exists is answered with 404.
type partitionKey struct {
	// text is the definition's paths, for people.
	text string
	// paths are the names on the way to each member.
	paths [][]string
}

// isID reports whether the key is the document's id. A 404 then says that no document has the id.
func (k partitionKey) isID() bool {
	return len(k.paths) == 1 && slices.Equal(k.paths[0], []string{"id"})
}

// of gives the key of a document as the service's header has it: a JSON list in plain ASCII, in which {} is an absent
// member. The service compares numbers as doubles. azcosmos (v1.5.0) would write texts by Go's rules: \U0001f600 and
// \x7f are not JSON, so the service refuses every such request. Escapes stay as they are.
func (k partitionKey) of(doc json.RawMessage) string {
	var b strings.Builder
	for i, path := range k.paths {
		var number float64
		value := invoice.Member(doc, path)
		switch {
		case len(value) == 0:
			value = json.RawMessage("{}")
		case value[0] != 'n' && json.Unmarshal(value, &number) == nil:
			if double, err := json.Marshal(number); err == nil {
				value = double
			}
		}
		b.WriteByte("[,"[min(i, 1)])
		for _, unit := range utf16.Encode([]rune(string(value))) {
			if unit < ' ' || unit > '~' {
				fmt.Fprintf(&b, `\u%04x`, unit)
			} else {
				b.WriteByte(byte(unit))
			}
		}
	}
	return b.String() + "]"
}

// sameKey reports whether two headers are of one key. A text may be written in several ways.
func sameKey(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// withKey sets the header of the partition key.
func withKey(ctx context.Context, header string) context.Context {
	return policy.WithHTTPHeader(ctx, http.Header{"X-Ms-Documentdb-Partitionkey": {header}})
}

// partitionKeyOf reads a container's definition. mustBeID is for containers of the app itself. An error is
// infrastructure, code "partition_key", and says what is wrong and what mends it.
func partitionKeyOf(p azcosmos.ContainerProperties, mustBeID bool) (partitionKey, error) {
	k := partitionKey{text: strings.Join(p.PartitionKeyDefinition.Paths, ", ")}
	refuse := func(why string) (partitionKey, error) {
		return partitionKey{}, fault.New(fault.Infrastructure, "cosmos: read partition key", CodePartitionKey,
			"container %s has the partition key %q: %s", p.ID, k.text, why)
	}
	const other = ": copy the documents into a container with another key, such as /request_details/id"
	for _, text := range p.PartitionKeyDefinition.Paths {
		path, ok := splitPath(text)
		switch {
		case !ok || slices.ContainsFunc(path[1:], isIndex):
			return refuse(text + " is no path of members" + other)
		case path[0] == "sql_writer":
			return refuse("the app writes sql_writer, and Cosmos DB refuses to change a key" + other)
		case slices.Contains(systemMembers(), path[0]):
			return refuse("Cosmos DB itself writes " + path[0] + other)
		}
		k.paths = append(k.paths, path)
	}
	switch {
	case mustBeID && !k.isID():
		return refuse("it must be /id: name a container that has that key, or make one")
	case len(k.paths) == 0:
		return refuse("it has none" + other)
	}
	return k, nil
}

// splitPath gives the names of a path such as /request_details/id. A name may be in quotes (docs/facts.md F112).
func splitPath(text string) (names []string, ok bool) {
	const part = `/(?:"((?:[^"\\]|\\.)+)"|'((?:[^'\\]|\\.)+)'|([^/"'][^/]*))`
	for _, m := range regexp.MustCompile(part).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2]+m[3])
	}
	return names, regexp.MustCompile("^(?:" + part + ")+$").MatchString(text)
}

// systemMembers are those that the service writes, and the key that it gave to containers that had none.
func systemMembers() []string {
	return []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn", "_partitionKey"}
}

// isIndex reports whether a name of a path may be a place in a list, as 0 or [].
func isIndex(name string) bool { return strings.Trim(name, "0123456789[]") == "" }

// learn keeps the partition key of a definition.
func (c *Container) learn(s *connected, p azcosmos.ContainerProperties) (partitionKey, error) {
	k, err := partitionKeyOf(p, c.options.KeyIsID)
	if err != nil {
		s.key.Store(nil)
		return k, err
	}
	s.key.Store(&k)
	return k, nil
}

// readDefinition reads the container's definition and keeps its partition key. It costs 1 RU.
func (c *Container) readDefinition(ctx context.Context) (k partitionKey, p azcosmos.ContainerProperties, err error) {
	var refused error
	err = c.do(ctx, operation{"cosmos: read definition", onContainer}, c.options.Timeouts.Ping,
		func(ctx context.Context, s *connected) error {
			r, err := s.container.Read(ctx, nil)
			if err != nil {
				return err
			}
			p = *r.ContainerProperties
			k, refused = c.learn(s, p)
			return nil
		})
	return k, p, cmp.Or(err, refused)
}

// key gives the container's partition key, from the definition that was read last.
func (c *Container) key(ctx context.Context) (partitionKey, error) {
	if s := c.sdk.Load(); s != nil {
		if k := s.key.Load(); k != nil {
			return *k, nil
		}
	}
	k, _, err := c.readDefinition(ctx)
	return k, err
}

// underKey makes one call for the document with an id. doc is the document, or nil if only the id is known.
//
// A 404 and a 400 also come when the key is not the document's: the container may have been made anew with another one,
// and the host rewrites texts that look like times (docs/facts.md F7). So the definition is read again, and the
// document is looked up by its id. Its etag still decides whether a write is made. Errors by kind, beside those of the
// call:
//   - infrastructure, code "partition_key"; code "not_caught_up" when only the look finds it
//   - document, code "id_twice": several documents have the id
func (c *Container) underKey(ctx context.Context, op operation, bound time.Duration, id string, doc json.RawMessage,
	call func(context.Context, *connected) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	whole := doc != nil
	if !whole {
		doc, _ = json.Marshal(map[string]string{"id": id}) // a text can always be encoded
	}
	key, err := c.key(ctx)
	for look := false; err == nil; {
		var header string
		if look = look || !whole && !key.isID(); !look {
			header = key.of(doc)
		} else if header, err = c.lookUp(ctx, op, key, id); err != nil {
			return err
		}
		called := c.do(withKey(ctx, header), op, bound, call)
		gone := fault.Has(called, fault.Gone)
		if statusOf(called) != http.StatusBadRequest && !gone {
			return called
		}
		before := key
		switch key, _, err = c.readDefinition(ctx); {
		case key.text != before.text:
			look = false
		case !gone || key.isID():
			return called
		case look:
			return fault.New(fault.Infrastructure, op.name, "not_caught_up",
				"a query finds the document with this id, and its address does not")
		default:
			look = true
		}
	}
	return err
}

// lookUp gives the key of the document with an id, by a query.
func (c *Container) lookUp(ctx context.Context, op operation, key partitionKey, id string) (string, error) {
	found, err := c.keysOf(ctx, op, key, id)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", &fault.Error{
			Kind: fault.Document, Condition: fault.Gone, Code: "404", Op: op.name,
			Reason: fmt.Sprintf("no document has the id %q", fault.Truncate(id, fault.MaxForeign)),
		}
	case len(found) > 1:
		return "", idTwice(op, id, found)
	}
	return found[0], nil
}

// keysOf gives the partition keys of the documents with an id. It is a query over all partitions.
func (c *Container) keysOf(ctx context.Context, op operation, key partitionKey, id string) (found []string, err error) {
	var first []string
	for _, path := range key.paths {
		first = append(first, "c["+strconv.Quote(path[0])+"]")
	}
	query := "SELECT " + strings.Join(distinct(first), ", ") + " FROM c WHERE c.id = @id"
	err = c.pages(ctx, operation{op.name, onContainer}, query, []Param{{"@id", id}},
		func(rows []json.RawMessage) (bool, error) {
			for _, row := range rows {
				found = append(found, key.of(row)) // a row may come twice while its partition is divided
			}
			return true, nil
		})
	return distinct(found), err
}

// idTwice is the error of an id that documents under several partition keys have.
func idTwice(op operation, id string, keys []string) error {
	slices.Sort(keys)
	return fault.New(fault.Document, op.name, commit.CodeIDTwice,
		"%d documents have the id %q, under the partition keys %s: delete all but one",
		len(keys), fault.Truncate(id, fault.MaxForeign), fault.Truncate(strings.Join(keys, " and "), fault.MaxForeign))
}
