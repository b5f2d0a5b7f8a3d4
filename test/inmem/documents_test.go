package inmem_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestDocuments(t *testing.T) {
	conformance.TestDocuments(t, func(*testing.T) conformance.DocumentsHarness {
		docs := inmem.NewDocuments(time.Now)
		return conformance.DocumentsHarness{
			Documents: docs,
			Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
			MaxBytes:  2 << 20,
		}
	})
}

func TestCreator(t *testing.T) { conformance.TestCreator(t, inmem.NewDocuments(time.Now)) }

func TestKeyedDocuments(t *testing.T) {
	conformance.TestKeyedDocuments(t, func(*testing.T) conformance.KeyedHarness {
		docs := inmem.NewDocuments(time.Now)
		request := func(key int) string { return fmt.Sprintf(`"R%d"`, key) }
		return conformance.KeyedHarness{
			DocumentsHarness: conformance.DocumentsHarness{
				Documents: docs, Put: func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
			},
			Document: func(id string, key int) json.RawMessage {
				return json.RawMessage(fmt.Sprintf(`{"id":%q,"request_details":{"id":%s}}`, id, request(key)))
			},
			Delete: func(_ testing.TB, doc json.RawMessage) {
				var d struct {
					ID      string `json:"id"`
					Request struct {
						ID json.RawMessage `json:"id"`
					} `json:"request_details"`
				}
				_ = json.Unmarshal(doc, &d) // Document made it
				docs.DeleteUnder(d.ID, string(d.Request.ID))
			},
		}
	})
}
