package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// ResultsKey is the partition key of a container of results.
const ResultsKey = "/request_details/id"

// Documents are those of a container of results, as the programs beside the app use them. Its partition key is
// ResultsKey.
type Documents struct{ *azcosmos.ContainerClient }

// Put writes a whole document, new or over an old one.
func (d Documents) Put(ctx context.Context, doc json.RawMessage) error {
	key, err := requestOf(doc)
	if err != nil {
		return err
	}
	_, err = d.UpsertItem(under(ctx, key), azcosmos.NewPartitionKey(), doc, nil)
	return err
}

// CreateUnder writes a new document under a partition key, which is a header of the service.
func (d Documents) CreateUnder(ctx context.Context, header string, doc json.RawMessage) error {
	_, err := d.CreateItem(withHeader(ctx, header), azcosmos.NewPartitionKey(), doc, nil)
	return err
}

// requestOf is the partition key of a document; nil if it has none.
func requestOf(doc json.RawMessage) (json.RawMessage, error) {
	var members, request map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(members["request_details"], &request) // what is no object has no members
	return request["id"], nil
}

// Get reads the document with an id.
func (d Documents) Get(ctx context.Context, id string) (json.RawMessage, error) {
	ctx, err := d.find(ctx, id)
	if err != nil {
		return nil, err
	}
	item, err := d.ReadItem(ctx, azcosmos.NewPartitionKey(), id, nil)
	return item.Value, err
}

// Delete deletes the document with an id.
func (d Documents) Delete(ctx context.Context, id string) error {
	ctx, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	_, err = d.DeleteItem(ctx, azcosmos.NewPartitionKey(), id, nil)
	return err
}

// DeleteAs deletes the document with the id and the partition key of doc.
func (d Documents) DeleteAs(ctx context.Context, doc json.RawMessage) error {
	key, err := requestOf(doc)
	if err != nil {
		return err
	}
	var head struct{ ID string }
	if err := json.Unmarshal(doc, &head); err != nil {
		return err
	}
	_, err = d.DeleteItem(under(ctx, key), azcosmos.NewPartitionKey(), head.ID, nil)
	return err
}

// Patch changes the document with an id.
func (d Documents) Patch(ctx context.Context, id string, patch azcosmos.PatchOperations) error {
	ctx, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	_, err = d.PatchItem(ctx, azcosmos.NewPartitionKey(), id, patch, nil)
	return err
}

// find gives the context of a request for the document with an id. Without a document the request will be answered with
// 404.
func (d Documents) find(ctx context.Context, id string) (context.Context, error) {
	pager := d.NewQueryItemsPager("SELECT c.request_details.id FROM c WHERE c.id = @id", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: id}}})
	var keys []json.RawMessage
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			var row struct {
				ID json.RawMessage `json:"id"`
			}
			if err := json.Unmarshal(item, &row); err != nil {
				return nil, err
			}
			keys = append(keys, row.ID)
		}
	}
	if len(keys) > 1 {
		return nil, fmt.Errorf("%d documents have the id %q", len(keys), id)
	}
	return under(ctx, append(keys, nil)[0]), nil
}

// under sets the partition key of a request. azcosmos has no value for an absent member.
func under(ctx context.Context, key json.RawMessage) context.Context {
	header := "[{}]"
	if key != nil {
		header = "[" + string(key) + "]"
	}
	return withHeader(ctx, header)
}

func withHeader(ctx context.Context, header string) context.Context {
	return policy.WithHTTPHeader(ctx, http.Header{"X-Ms-Documentdb-Partitionkey": {header}})
}

// InRequest gives a document the id of a request, if it has none.
func InRequest(doc json.RawMessage) (json.RawMessage, error) {
	var d map[string]json.RawMessage
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	var request map[string]json.RawMessage
	if err := json.Unmarshal(d["request_details"], &request); err != nil || request == nil || request["id"] != nil {
		return doc, nil //nolint:nilerr // it is as the test wants it
	}
	var id string
	if err := json.Unmarshal(d["id"], &id); err != nil {
		return nil, err
	}
	request["id"] = json.RawMessage(fmt.Sprintf("%q", "request of "+id))
	var err error
	if d["request_details"], err = json.Marshal(request); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}
