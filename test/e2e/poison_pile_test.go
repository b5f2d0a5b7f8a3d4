package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/sample"
)

// The pile: so many poison messages, and what became of their documents before the retry.
const (
	piled = 1000
	// A newer result of the line was written; the document was committed by hand; it was deleted.
	piledNewer, piledByHand, piledGone = 50, 30, 10
)

// pileDocument is a result that the database refuses while it has the trigger of pileUp. Its six failures count.
func pileDocument(t *testing.T, line, reprocessed int, part string) (id string, doc json.RawMessage) {
	t.Helper()
	id, raw := aResult(t, "web", line, map[string]any{"part_number": part})
	state := fmt.Sprintf(
		`{"status":"retry_scheduled","retry_count":5,"postponed":true,"retry_after":1,"reprocess_count":%d,"last_error_at":%q,
		"last_error":"refused","last_error_kind":"document","last_error_code":"1811"}`, reprocessed, invoice.Stamp(time.Now().Add(-time.Hour), time.UTC))
	return id, json.RawMessage(strings.Replace(string(raw), `{"retry_count":0,"status":"pending"}`, state, 1))
}

// idsWhere lists the documents that match a condition.
func (s *stack) idsWhere(condition string) (ids []string) {
	s.t.Helper()
	pager := s.docs.NewQueryItemsPager("SELECT VALUE c.id FROM c WHERE "+condition, azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{PageSizeHint: 1000})
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, item := range page.Items {
			var id string
			require.NoError(s.t, json.Unmarshal(item, &id))
			ids = append(ids, id)
		}
	}
	return ids
}

// waitForFailed waits until so many documents are failed. Some wait for an hour, because the control document was
// changed by others when it was to count them.
func (s *stack) waitForFailed(want int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.makeDue(s.idsWhere("c.sql_writer.status = 'retry_scheduled' AND c.sql_writer.retry_after > 1")...)
		return len(s.idsWhere("c.sql_writer.status = 'failed'")) == want
	}, runPatience, time.Second, "not all documents became poison messages")
}

// terminal runs the commands of a page as they are written, in one folder.
type terminal struct {
	t   *testing.T
	dir string
	env []string
}

func newTerminal(t *testing.T, settings map[string]string) terminal {
	t.Helper()
	dir := t.TempDir()
	c := terminal{t, dir, []string{"HOME=" + dir, "PATH=" + filepath.Dir(ctlBinary(t)) + ":" + os.Getenv("PATH")}}
	for name, value := range settings {
		c.env = append(c.env, name+"="+value)
	}
	return c
}

func (c terminal) command(line string) *exec.Cmd {
	c.t.Helper()
	c.t.Logf("$ %s", line)
	cmd := exec.CommandContext(c.t.Context(), "sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env = c.dir, c.env
	return cmd
}

// run runs a command, and returns what it printed on stdout and stderr.
func (c terminal) run(line string) string {
	c.t.Helper()
	out, err := c.command(line).CombinedOutput()
	require.NoError(c.t, err, "%s", out)
	return string(out)
}

// commandsUnder reads the shell block of a section of a page.
func commandsUnder(t *testing.T, path, heading string) (commands []string) {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n"+heading+"\n")
	require.True(t, found, heading)
	_, block, found := strings.Cut(section, "```sh\n")
	require.True(t, found, heading)
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		commands = append(commands, strings.TrimSpace(line))
	}
	return commands
}

// The runbook's section "Poison messages pile up", command by command as written, over a thousand poison messages that
// the real handler made. The tool asks the app.
func TestPoisonMessagesPileUp(t *testing.T) {
	s, blobs := pileUp(t)
	page := commandsUnder(t, "../../docs/runbook.md", "### Poison messages pile up")
	require.Len(t, page, 9)
	c := newTerminal(t, map[string]string{"SQLWRITER_APP": "http://" + s.host.Address(), "SQLWRITER_KEY": functionKey})
	replayable := piled - piledByHand - piledGone
	coded := func(line string) string { return strings.Replace(line, "2628", "1811", 1) }

	require.Eventually(t, func() bool { // the timer counts
		return strings.Contains(c.run(page[0]),
			"sqlwriterctl document retry --status failed --kind document --error-code 1811")
	}, patience, time.Second)
	written := s.count("SELECT COUNT(*) FROM counted")
	require.Contains(t, c.run(coded(page[1])), fmt.Sprintf("%d documents match a replay", replayable))
	status, answer := s.ops(http.MethodPost, "documents/retry", `{"status":"failed","dry_run":true}`, readerKey)
	require.Equal(t, http.StatusForbidden, status, "%v", answer)
	require.Equal(t, written, s.count("SELECT COUNT(*) FROM counted"))
	require.Zero(t, s.count("SELECT COUNT(*) FROM sqlwriter_run"))

	c.run(coded(page[2]))
	id := regexp.MustCompile(`replay-\S+`).FindString(c.run(page[3]))
	require.NotEmpty(t, id)
	require.Eventually(t, func() bool {
		return strings.Contains(c.run("sqlwriterctl run show "+id), "completed")
	}, runPatience, time.Second, "%s", c.run("sqlwriterctl run show "+id))
	require.Regexp(t, fmt.Sprintf(`outcomes +%d applied, %d superseded\n`, replayable-piledNewer, piledNewer),
		c.run("sqlwriterctl run show "+id))
	require.NotContains(t, c.run(strings.Replace(page[4], "RUN", id, 1)), pileID(1), "nothing failed again")
	require.Equal(t, replayable-piledNewer,
		s.count("SELECT COUNT(*) FROM IVCE_DTL WHERE CLN_MFR_AI_NM = 'ACME' AND CLN_MFR_PRT_NUM = '425'"))
	require.Equal(t, piledNewer, s.count("SELECT COUNT(*) FROM IVCE_DTL WHERE CLN_MFR_AI_NM = 'NEWER'"))

	// Twice changes nothing.
	written = s.count("SELECT COUNT(*) FROM counted")
	require.Contains(t, c.run(coded(page[2])), "0 documents match a replay")
	require.Equal(t, written, s.count("SELECT COUNT(*) FROM counted"))
	require.Equal(t, 1, s.count("SELECT COUNT(*) FROM sqlwriter_run"))

	// Two of the ten that were deleted are wanted back: line 951 has two failures.
	for n, part := range []string{"SECOND", "425"} {
		id := pileID(951 + n)
		named := func(line string) string { return strings.Replace(line, "ID", "'"+id+"'", 1) }
		require.Contains(t, c.run(named(page[5])), id+" would be put back as failed (document 1811), from failed/")
		_, err := s.docs.Get(t.Context(), id)
		require.Error(t, err, "a dry run creates nothing")
		require.Contains(t, c.run(named(page[6])), id+" was put back as failed")
		require.Regexp(t, `outcomes +1 applied\n`, c.run(named(page[7])))
		require.Equal(t, 1,
			s.count(
				fmt.Sprintf(
					"SELECT COUNT(*) FROM IVCE_DTL WHERE IVCE_DTL_UID = %d AND CLN_MFR_PRT_NUM = '%s' AND IVCE_LNE_STAT = 'RC-AI'", 951+n, part)))
		require.Equal(t, "committed", s.state(id)["status"])
		s.requireAsItWas(blobs, id,
			"web/failed/"+strings.NewReplacer(" ", "%20", ":", "%3A").Replace(fmt.Sprintf("%d/%s/", 951+n, id)))
	}
	require.Equal(t, 2, strings.Count(c.run(page[8]), "DOCUMENT_RESTORE"))

	// Its line has content of it now. Deleted again, it does not come back over that.
	id = pileID(951)
	require.NoError(t, s.docs.Delete(t.Context(), id))
	status, answer = s.ops(http.MethodPost, "evidence/restore", fmt.Sprintf(`{"id":%q,"why":"x"}`, id), functionKey)
	require.Equal(t, http.StatusConflict, status, "%v", answer)
	require.Contains(t, answer["detail"], "line 951 has content of it")
}

func pileID(line int) string {
	return fmt.Sprintf("2025-12-17 10:30:00.%06d-06:00-0001-%d", line, line)
}

// pileUp lets the handler make the pile. Then the cause is mended, and some documents change as people and programs
// change them.
func pileUp(t *testing.T) (*stack, *azurite.Server) {
	t.Helper()
	others := sample.Generate(sample.Options{Seed: 90, Count: 5, Clean: true})
	lines := sample.Lines(others)
	var docs []sample.Document
	for line := 1; line <= piled; line++ {
		id, doc := pileDocument(t, line, 0, "425")
		docs, lines = append(docs, sample.Document{Name: id, ID: id, JSON: doc}), append(lines, int64(line))
	}
	s, blobs := newStack(t, lines...), azurite.Start(t)
	s.blobs, s.recover = blobs.ConnectionString(), "*/2 * * * * *"
	s.exec(s.store.Writer(),
		`CREATE TRIGGER too_narrow BEFORE UPDATE OF CLN_MFR_AI_NM ON IVCE_DTL WHEN NEW.CLN_MFR_AI_NM = 'ACME' BEGIN SELECT RAISE(ABORT, 'too narrow'); END`)
	s.handler = s.launch("e2e", map[string]string{"MAX_POISON_PER_HOUR": "10000"})
	s.host = s.handler.Host
	s.submit(jsons(others)...) // others are written since those last failed: that is proof
	s.waitUntilQuiet(len(others))
	began := time.Now()
	s.submitMany(docs)
	s.waitForFailed(piled)
	{ // one is tried again with other content, and given up again
		_, doc := pileDocument(t, 951, 1, "SECOND")
		s.submit(doc)
	}
	require.Eventually(t, func() bool {
		state := s.state(pileID(951))
		return state["status"] == "failed" && state["reprocess_count"] == 1.0
	}, patience, 100*time.Millisecond, "%v", s.state(pileID(951)))
	require.Equal(t, piled,
		s.count("SELECT COUNT(*) FROM IVCE_DTL WHERE IVCE_LNE_STAT = 'AI-ERROR' AND IVCE_DTL_UID <= 1000"))
	t.Logf("%d poison messages in %s", piled, time.Since(began).Round(time.Second))

	for line := 1; line <= piledNewer; line++ {
		_, doc := aResult(t, "web", line, map[string]any{"manufacturer_name": "NEWER"})
		newer := strings.Replace(pileID(line), "10:30:00", "11:30:00", 1)
		s.submit(json.RawMessage(strings.Replace(string(doc), pileID(line), newer, 1)))
	}
	require.Eventually(t, func() bool {
		return s.count("SELECT COUNT(*) FROM IVCE_DTL WHERE CLN_MFR_AI_NM = 'NEWER'") == piledNewer
	}, patience, 50*time.Millisecond)
	s.exec(s.store.Writer(), "DROP TRIGGER too_narrow")
	for line := 901; line <= 900+piledByHand; line++ {
		_, doc := aResult(t, "web", line, nil)
		s.submit(
			json.RawMessage(
				strings.Replace(string(doc), `"status":"pending"`, `"status":"committed","outcome":"manual"`, 1)))
	}
	for line := 951; line <= 950+piledGone; line++ {
		require.NoError(t, s.docs.Delete(t.Context(), pileID(line)))
	}
	return s, blobs
}

// requireAsItWas requires that a document is what its newest evidence below a folder has, but for what belongs to the
// container and to us.
func (s *stack) requireAsItWas(blobs *azurite.Server, id, folder string) {
	s.t.Helper()
	client, err := azblob.NewClientFromConnectionString(blobs.ConnectionString(), nil)
	require.NoError(s.t, err)
	content := func(doc []byte) map[string]json.RawMessage {
		var members map[string]json.RawMessage
		require.NoError(s.t, json.Unmarshal(doc, &members))
		maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
			return name[0] == '_' || name == "sql_writer"
		})
		return members
	}
	was := ""
	for pager := client.NewListBlobsFlatPager("sqlwriter",
		&azblob.ListBlobsFlatOptions{Prefix: to.Ptr(folder)}); pager.More(); {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, item := range page.Segment.BlobItems {
			if strings.HasSuffix(*item.Name, "/original.json") {
				was = *item.Name
			}
		}
	}
	require.Equal(s.t, content(download(s.t, client, was)), content(s.document(id)))
}
