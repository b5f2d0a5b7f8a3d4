package cosmos

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// CodePartitionKey is the code of a container whose partition key cannot be used.
const CodePartitionKey = "partition_key"

// partitionKey is the partition key of a container: one to three members of each document. It is read from the container's
// definition and never assumed: under a wrong key a document that exists is answered with 404.
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

// of gives the key of a document as the service's header has it: a JSON list in plain ASCII, in which {} is an absent member.
func (k partitionKey) of(doc json.RawMessage) string {
	values := make([]json.RawMessage, len(k.paths))
	for i, path := range k.paths {
		values[i] = invoice.Member(doc, path)
	}
	return keyHeader(values)
}

// keyOf gives the key of a document to underKey, and keyOfID that of one of which only the id is known: "" if the key is
// another member.
func keyOf(doc json.RawMessage) func(partitionKey) string {
	return func(k partitionKey) string { return k.of(doc) }
}

func keyOfID(id string) func(partitionKey) string {
	return func(k partitionKey) string {
		value, err := json.Marshal(id)
		if err != nil || !k.isID() {
			return ""
		}
		return keyHeader([]json.RawMessage{value})
	}
}

// keyHeader writes the values of a key. The service compares numbers as doubles. azcosmos (v1.5.0) would write texts by Go's
// rules: \U0001f600 and \x7f are not JSON, so the service refuses every such request.
func keyHeader(values []json.RawMessage) string {
	parts := make([]string, len(values))
	for i, value := range values {
		var number float64
		switch {
		case len(value) == 0:
			parts[i] = "{}"
			continue
		case value[0] == '"':
			parts[i] = textHeader(value)
			continue
		case value[0] != 'n' && json.Unmarshal(value, &number) == nil:
			if double, err := json.Marshal(number); err == nil {
				value = double
			}
		}
		parts[i] = string(value)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// textHeader writes a JSON text in plain ASCII, each text in one way only. Half a surrogate pair stays what it is.
func textHeader(text json.RawMessage) string {
	const escapes, meanings = `bfnrt"\/`, "\b\f\n\r\t\"\\/"
	var units []uint16
	for rest := string(text[1 : len(text)-1]); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if r != '\\' {
			units, rest = utf16.AppendRune(units, r), rest[size:]
			continue
		}
		if i := strings.IndexByte(escapes, rest[1]); i >= 0 {
			units, rest = append(units, uint16(meanings[i])), rest[2:]
			continue
		}
		unit, _ := strconv.ParseUint(rest[2:6], 16, 16) // the text is valid JSON
		units, rest = append(units, uint16(unit)), rest[6:]
	}
	b := []byte{'"'}
	for _, unit := range units {
		switch {
		case unit == '"' || unit == '\\':
			b = append(b, '\\', byte(unit))
		case unit < ' ' || unit > '~':
			b = fmt.Appendf(b, `\u%04x`, unit)
		default:
			b = append(b, byte(unit))
		}
	}
	return string(append(b, '"'))
}

// withKey sets the header of the partition key.
func withKey(ctx context.Context, header string) context.Context {
	return policy.WithHTTPHeader(ctx, http.Header{"X-Ms-Documentdb-Partitionkey": {header}})
}

// partitionKeyOf reads a container's definition. mustBeID is for containers of the app itself. An error is infrastructure,
// code "partition_key", and says what is wrong and what mends it.
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
		case !ok || slices.Contains(path, "[]") || slices.ContainsFunc(path[1:], isIndex):
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
		return refuse("it must be /id: delete the container and make it anew with the partition key /id")
	case len(k.paths) == 0:
		return refuse("it has none" + other)
	}
	return k, nil
}

// splitPath gives the names of a path such as /request_details/id. A name may be in quotes, as PathParser of the vendor's SDKs
// reads it.
func splitPath(text string) (names []string, ok bool) {
	for text != "" {
		rest, slash := strings.CutPrefix(text, "/")
		if !slash || rest == "" {
			return nil, false
		}
		var name string
		if quote := rest[:1]; quote == `"` || quote == "'" {
			end := 1
			for end < len(rest) && (rest[end:end+1] != quote || rest[end-1] == '\\') {
				end++
			}
			if end == len(rest) {
				return nil, false
			}
			name, text = rest[1:end], rest[end+1:]
		} else {
			end := strings.IndexByte(rest+"/", '/')
			name, text = rest[:end], rest[end:]
		}
		if name == "" {
			return nil, false
		}
		names = append(names, name)
	}
	return names, len(names) > 0
}

// systemMembers are those that the service writes, and the key that it gave to containers that had none.
func systemMembers() []string {
	return []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn", "_partitionKey"}
}

// isIndex reports whether a name of a path may be the place in a list.
func isIndex(name string) bool { return strings.Trim(name, "0123456789") == "" }

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
	err = c.do(ctx, operation{"cosmos: read definition", onContainer}, c.options.Timeouts.Ping, func(ctx context.Context, s *connected) error {
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

// underKey makes one call for the document with an id. headerOf gives its partition key: keyOf or keyOfID.
//
// A 404 and a 400 also come when the key is not the document's: the container may have been made anew with another one, and
// the host rewrites texts that look like times (docs/facts.md F7). So the definition is read again, and the document is looked
// up by its id. Its etag still decides whether a write is made. Errors by kind, beside those of the call:
//   - infrastructure, code "partition_key"; code "not_caught_up" when only the look finds it
//   - document, code "id_twice": several documents have the id
func (c *Container) underKey(ctx context.Context, op operation, bound time.Duration, id string, headerOf func(partitionKey) string,
	call func(context.Context, *connected) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	key, err := c.key(ctx)
	if err != nil {
		return err
	}
	for looked := false; ; {
		header := headerOf(key)
		if looked = looked || header == ""; looked {
			found, err := c.keysOf(ctx, op, key, id)
			switch {
			case err != nil:
				return err
			case len(found) == 0:
				return gone(op, id)
			case len(found) > 1:
				return idTwice(op, id, found)
			}
			header = found[0]
		}
		err := c.do(withKey(ctx, header), op, bound, call)
		if statusOf(err) != http.StatusBadRequest && !fault.Has(err, fault.Gone) {
			return err
		}
		now, _, unread := c.readDefinition(ctx)
		switch {
		case unread != nil:
			return unread
		case now.text != key.text:
			key, looked = now, false
		case !fault.Has(err, fault.Gone) || key.isID():
			return err
		case looked:
			return fault.New(fault.Infrastructure, op.name, "not_caught_up", "a query finds the document with this id, and its address does not")
		default:
			looked = true
		}
	}
}

// keysOf gives the partition keys of the documents with an id. It is a query over all partitions.
func (c *Container) keysOf(ctx context.Context, op operation, key partitionKey, id string) (found []string, err error) {
	selected := make([]string, len(key.paths))
	names := make([]string, len(key.paths))
	for i, path := range key.paths {
		names[i] = "k" + strconv.Itoa(i)
		selected[i] = member(path) + " AS " + names[i]
	}
	query := "SELECT " + strings.Join(selected, ", ") + " FROM c WHERE c.id = @id"
	_, err = c.pages(ctx, operation{op.name, onContainer}, query, []Param{{"@id", id}}, func(rows []json.RawMessage) (bool, error) {
		for _, row := range rows {
			values := make([]json.RawMessage, len(names))
			for i, name := range names {
				values[i] = invoice.Member(row, []string{name})
			}
			found = append(found, keyHeader(values))
		}
		return true, nil
	})
	return found, err
}

func gone(op operation, id string) error {
	return &fault.Error{
		Kind: fault.Document, Condition: fault.Gone, Code: "404", Op: op.name,
		Reason: fmt.Sprintf("no document has the id %q", fault.Truncate(id, fault.MaxForeign)),
	}
}

// idTwice is the error of an id that documents under several partition keys have.
func idTwice(op operation, id string, keys []string) error {
	slices.Sort(keys)
	return fault.New(fault.Document, op.name, commit.CodeIDTwice, "%d documents have the id %q, under the partition keys %s: delete all but one",
		len(keys), fault.Truncate(id, fault.MaxForeign), fault.Truncate(strings.Join(keys, " and "), fault.MaxForeign))
}
