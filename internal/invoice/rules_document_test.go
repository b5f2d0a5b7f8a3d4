package invoice_test

func wholeRules() []rule {
	return []rule{
		{
			name: "an ordinary result", in: `{}`, then: "written",
			sql: "main line = 1421549; duplicates = []; CLN_MFR_AI_NM = 'THOMAS & BETTS'; CLN_MFR_PRT_NUM = '425'; UNSPSC_CD = '39131711'; IVCE_LNE_STAT = 'RC-AI'; DATA_VRFN_IND = 'N'; MFR_CNFDC_SCR = '0.9500'; IVCE_TRKG_MSTR.PRCS_END_TS = '2025-12-17T16:30:09.500000Z'", why: "docs/requirements.md R10",
		},
		{
			name: "unknown members", in: `{"new": {"deep": [1, {"id": "x"}]}, "process_output": {"new": true}}`,
			then: "written", sql: "CLN_MFR_PRT_NUM = '425'",
			why: "the pipeline may add members; unknown ones are ignored",
		},
		{
			name: "a name in other case", in: `{"Process_Output": {"part_number": "7"}, "ID": "other"}`,
			then: "written", sql: "CLN_MFR_PRT_NUM = '425'", why: "names are exact: another spelling is another member",
		},
		{
			name: "a name with escapes", old: `"part_number": "425"`, in: `"part\u005fnumber": "7"`, then: "written",
			sql: "CLN_MFR_PRT_NUM = '7'", why: "JSON says that this is the same name",
		},
		{
			name: "a name that stands twice", old: `"part_number": "425"`, in: `"part_number": "1", "part_number": "2"`,
			then: "written", sql: "CLN_MFR_PRT_NUM = '2'",
			why: "the last value counts, as Cosmos DB and every common decoder have it",
		},
		{
			name: "an object that stands twice", old: `"post-processing": {"duplicate_detail_uids": []}`,
			in: `"post-processing": {"duplicate_detail_uids": [5]}, "post-processing": {}`, then: "written",
			sql: "duplicates = []", why: "the last object counts; the two are not merged",
		},
		{
			name: "no process_output", without: "process_output", then: "failed validation.not_an_object",
			sql: "main line = 1421549; CLN_MFR_PRT_NUM = NULL",
			why: "without a result there is nothing to write, and another try cannot help",
		},
		{
			name: "process_output null", in: `{"process_output": null}`,
			then: "failed validation.not_an_object", why: "as absent",
		},
		{
			name: "process_output a text", in: `{"process_output": "done"}`, then: "failed validation.not_an_object",
			why: "not a result in any form we know",
		},
		{
			name: "process_output a list", in: `{"process_output": [{"part_number": "425"}]}`,
			then: "failed validation.not_an_object", why: "which element would be meant?",
		},
		{
			name: "sql_writer a text", in: `{"sql_writer": "pending"}`, then: "left alone: not_offered",
			why: "the state is an object; this has no status",
		},
		{name: "sql_writer a list", in: `{"sql_writer": []}`, then: "left alone: not_offered", why: "as a text"},
		{
			name: "not JSON", old: baseDocument, in: `{"id": "x"`, then: "not recorded validation.not_json",
			why: "without an id nothing can be recorded; a line in the log says where the text is invalid",
		},
		{name: "nothing", old: baseDocument, in: ``, then: "not recorded validation.not_json", why: "as not JSON"},
		{
			name: "not an object", old: baseDocument, in: `["2025-12-17 10:30:00.000000-06:00-0001-1421549"]`,
			then: "not recorded validation.not_an_object", why: "a document is an object",
		},
		{
			name: "no id", without: "id", then: "not recorded validation.no_id",
			why: "the id is where the outcome is recorded",
		},
		{
			name: "id a number", in: `{"id": 17}`, then: "not recorded validation.no_id",
			why: "Cosmos DB has text ids only",
		},
		{
			name: "id with a slash", in: `{"id": "a/b"}`, then: "not recorded validation.id_characters",
			why: "Cosmos DB cannot address such a document, so its outcome could not be recorded, and nothing is written",
		},
		{name: "id empty", in: `{"id": ""}`, then: "not recorded validation.no_id", why: "Cosmos DB has no empty ids"},
		{
			name: "id with a lone surrogate", in: `{"id": "a\ud800"}`, then: "not recorded validation.no_id",
			why: "it cannot be sent back unchanged",
		},
	}
}

func environmentRules() []rule {
	return []rule{
		{name: "ours", in: `{"request_details": {"sys_name": "web"}}`, then: "written", why: "SYS_NAME is web here"},
		{
			name: "another environment", in: `{"request_details": {"sys_name": "dev1"}}`, then: "left alone: not_ours",
			why: "each environment touches its own documents only",
		},
		{
			name: "other case", in: `{"request_details": {"sys_name": "Web"}}`, then: "left alone: not_ours",
			why: "exact match, as the old writer's query compared it",
		},
		{
			name: "with a blank", in: `{"request_details": {"sys_name": "web "}}`,
			then: "left alone: not_ours", why: "exact match",
		},
		{
			name: "missing", without: "request_details.sys_name", then: "left alone: not_ours",
			why: "it belongs to no environment",
		},
		{
			name: "no request_details", without: "request_details", then: "left alone: not_ours",
			why: "it belongs to no environment",
		},
		{name: "null", in: `{"request_details": {"sys_name": null}}`, then: "left alone: not_ours", why: "as missing"},
		{
			name: "not a text", in: `{"request_details": {"sys_name": ["web"]}}`,
			then: "left alone: not_ours", why: "as missing",
		},
	}
}

func stateRules() []rule {
	return []rule{
		{
			name: "pending", in: `{"sql_writer": {"status": "pending"}}`, then: "written", sql: "retry_count = 0",
			why: "the ordinary case",
		},
		{
			name: "no sql_writer", without: "sql_writer", then: "left alone: not_offered",
			why: "a result is offered by the status pending (docs/requirements.md R10); a log entry of something else must never be written",
		},
		{name: "sql_writer null", in: `{"sql_writer": null}`, then: "left alone: not_offered", why: "as absent"},
		{name: "no status", without: "sql_writer.status", then: "left alone: not_offered", why: "as absent"},
		{
			name: "status null", in: `{"sql_writer": {"status": null}}`,
			then: "left alone: not_offered", why: "as absent",
		},
		{
			name: "no status, but a failure",
			in:   `{"sql_writer": {"status": null, "retry_count": 2, "retry_after": 1, "failed_at": "2025-12-17 11:45:00.000000-06:00"}}`, then: "left alone: not_offered", why: "only a status offers a document",
		},
		{
			name: "PENDING in capitals", in: `{"sql_writer": {"status": "PENDING"}}`, then: "written",
			why: "people reset documents by hand; the feed minds neither case nor blanks, the timer finds lower, upper and capitalised",
		},
		{name: "blanks around", in: `{"sql_writer": {"status": " pending\n"}}`, then: "written", why: "as PENDING"},
		{
			name: "retry due",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_count": 1, "retry_after": 1765989300}}`,
			then: "written", sql: "retry_count = 1", why: "due at this very second",
		},
		{
			name: "retry not due", in: `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1765989301}}`,
			then: "left alone: not_due", why: "one second too early",
		},
		{
			name: "retry_after with a fraction",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1765989300.000001}}`,
			then: "left alone: not_due",
			why:  "the old writer wrote fractions; they are rounded up, so nothing is due too early",
		},
		{
			name: "retry_after 1765989300.0",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1765989300.0}}`, then: "written",
			why: "a whole number all the same",
		},
		{
			name: "retry_after missing", in: `{"sql_writer": {"status": "retry_scheduled"}}`, then: "written",
			why: "no time is known: due",
		},
		{
			name: "retry_after a text",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": "1765999999"}}`, then: "written",
			why: "not a number: due; a document parked by a typing error would wait for ever",
		},
		{
			name: "retry_after far too large",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1e300}}`,
			then: "written", why: "no time: due",
		},
		{
			name: "retry_after a day ahead",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1766075700}}`,
			then: "left alone: not_due", why: "exactly 24 h; our own waits end at about an hour",
		},
		{
			name: "retry_after more than a day ahead",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1766075701}}`, then: "written",
			why: "further ahead than any real wait: due",
		},
		{
			name: "retry_after in milliseconds",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1765989300000}}`, then: "written",
			why: "read as seconds it is 54,000 years ahead: due",
		},
		{
			name: "postponed",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_count": 5, "retry_after": 1, "postponed": true}}`, then: "written", sql: "postponed = true; retry_count = 5", why: "its retries are spent, and it is tried by the same times",
		},
		{
			name: "postponed a text",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1, "postponed": "true"}}`,
			then: "written", sql: "postponed = false", why: "only the JSON value true counts",
		},
		{
			name: "postponed a number",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_after": 1, "postponed": 1}}`, then: "written",
			sql: "postponed = false", why: "as a text",
		},
		{
			name: "reset by hand while postponed",
			in:   `{"sql_writer": {"status": "pending", "postponed": true, "failed_at": "2025-12-17 11:45:00.000000-06:00"}}`, then: "written", sql: "postponed = false; reprocess_count = 1", why: "it starts afresh",
		},
		{
			name: "retry_count a text", in: `{"sql_writer": {"status": "retry_scheduled", "retry_count": "5"}}`,
			then: "written", sql: "retry_count = 0",
			why: "our members with a wrong type count as empty; the worst is a few tries more",
		},
		{
			name: "retry_count negative", in: `{"sql_writer": {"status": "retry_scheduled", "retry_count": -1}}`,
			then: "written", sql: "retry_count = 0", why: "as a text",
		},
		{
			name: "retry_count 2.5", in: `{"sql_writer": {"status": "retry_scheduled", "retry_count": 2.5}}`,
			then: "written", sql: "retry_count = 0", why: "as a text",
		},
		{
			name: "already committed",
			in:   `{"sql_writer": {"status": "committed", "committed_at": "2025-12-17 10:30:15.123456-06:00"}}`,
			then: "left alone: done", why: "our own patch comes back on the feed; it must not start anything",
		},
		{
			name: "failed", in: `{"sql_writer": {"status": "failed", "failed_at": "2025-12-17 11:45:00.000000-06:00"}}`,
			then: "left alone: done", why: "only an operator resets it",
		},
		{
			name: "reset by hand",
			in:   `{"sql_writer": {"status": "pending", "retry_count": 5, "failed_at": "2025-12-17 11:45:00.000000-06:00"}}`, then: "written", sql: "retry_count = 0; reprocess_count = 1", why: "pending with failed_at was failed once; it starts afresh, and the next patch says so",
		},
		{
			name: "reset by hand again",
			in:   `{"sql_writer": {"status": "Pending", "retry_count": 5, "reprocess_count": 2, "failed_at": "2025-12-17 11:45:00.000000-06:00"}}`, then: "written", sql: "retry_count = 0; reprocess_count = 3", why: "counted each time",
		},
		{
			name: "retry after an earlier failure",
			in:   `{"sql_writer": {"status": "retry_scheduled", "retry_count": 2, "failed_at": "2025-12-17 11:45:00.000000-06:00"}}`, then: "written", sql: "retry_count = 2; reprocess_count = 0", why: "only pending means that an operator reset it",
		},
		{
			name: "processing, young", in: `{"sql_writer": {"status": "processing"}}`,
			then: "left alone: in_old_writer", why: "_ts is 4 min 45 s ago: the old writer may still be working on it",
		},
		{
			name: "processing, ten minutes to the second",
			in:   `{"_ts": 1765988700, "sql_writer": {"status": "processing"}}`, then: "left alone: in_old_writer",
			why: "the limit is more than ten minutes",
		},
		{
			name: "processing, old", in: `{"_ts": 1765988699, "sql_writer": {"status": "processing"}}`, then: "written",
			why: "older than ten minutes by _ts: abandoned by a writer that died",
		},
		{
			name: "an unknown status", in: `{"sql_writer": {"status": "Paused"}}`, then: "left alone: unknown_status",
			why: "the status is unknown; an error line reports it",
		},
		{
			name: "status empty", in: `{"sql_writer": {"status": ""}}`, then: "left alone: unknown_status",
			why: "not a known status",
		},
		{
			name: "status a number", in: `{"sql_writer": {"status": 1}}`, then: "left alone: unknown_status",
			why: "as an unknown status",
		},
		{
			name: "unknown members of sql_writer", in: `{"sql_writer": {"note": {"by": "QA"}, "ticket": 17}}`,
			then: "written", sql: "kept = 2 unknown members; read again = false",
			why: "they are written back as they were",
		},
		{
			name: "the whole id is an ISO time", in: `{"id": "2025-12-17T10:30:00.1000000Z"}`, then: "written",
			sql: "read again = true",
			why: "the host may have rewritten the id: only a document that is found under it is used; otherwise an error line reports it and nothing is written",
		},
		{
			name: "the whole id is an ISO time, beside an unknown member of sql_writer",
			in:   `{"id": "2025-12-17T10:30:00.1000000Z", "sql_writer": {"note": "QA"}}`, then: "written",
			sql: "kept = 1 unknown members; read again = true", why: "as above, whatever the member is",
		},
		{
			name: "an ISO time with a counter behind it", in: `{"id": "2025-12-17T10:30:00.100000-06:00-0001-1"}`,
			then: "written", sql: "read again = false", why: "the host rewrites only texts that are a time as a whole",
		},
		{
			name: "an unknown member that looks like an ISO time",
			in:   `{"sql_writer": {"note": {"at": "2025-12-17T10:30:00.1000000+02:00"}}}`, then: "written",
			sql: "kept = 1 unknown members; read again = true",
			why: "the host has rewritten it; we must write back the container's text",
		},
	}
}

func idRules() []rule {
	return []rule{
		{
			name: "a number", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 1421550}}`, then: "written",
			sql: "main line = 1421550", why: "the ordinary case; it is not compared with the end of the document's id",
		},
		{
			name: "a number with .0", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 1421549.0}}`, then: "written",
			sql: "main line = 1421549", why: "pandas and JSON writers make these of whole numbers",
		},
		{
			name: "a number with an exponent", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 1.421549e6}}`,
			then: "written", sql: "main line = 1421549", why: "the same number",
		},
		{
			name: "a text of digits", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "1421550"}}`, then: "written",
			sql: "main line = 1421550", why: "a text of digits is unambiguous",
		},
		{
			name: "2^53-1", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 9007199254740991}}`, then: "written",
			sql: "main line = 9007199254740991", why: "the largest exact JSON number",
		},
		{
			name: "2^53", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 9007199254740992}}`,
			then: "failed validation.inexact_id", sql: "main line = 0", why: "2^53+1 arrives as exactly this",
		},
		{
			name: "2^53+1", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 9007199254740993}}`,
			then: "failed validation.inexact_id", sql: "main line = 0",
			why: "Cosmos DB and JSON writers keep numbers as doubles: it may be another line's id; send it as text",
		},
		{
			name: "2^53+1 as text", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "9007199254740993"}}`,
			then: "written", sql: "main line = 9007199254740993", why: "a text keeps every digit",
		},
		{
			name: "2^63-1 as text", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "9223372036854775807"}}`,
			then: "written", sql: "main line = 9223372036854775807", why: "the largest bigint",
		},
		{
			name: "2^63", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 9223372036854775808}}`,
			then: "failed validation.inexact_id", why: "as 2^53+1",
		},
		{
			name: "2^63 as text", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "9223372036854775808"}}`,
			then: "failed validation.id", why: "outside bigint",
		},
		{
			name: "1e999999999", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 1e999999999}}`,
			then: "failed validation.inexact_id", why: "refused without being expanded",
		},
		{
			name: "12a", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "12a"}}`, then: "failed validation.id",
			why: "nothing is guessed: a wrong id writes to another line",
		},
		{
			name: "a text with a sign", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "+12"}}`,
			then: "failed validation.id", why: "exactly digits",
		},
		{
			name: "a text with a blank", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": " 12"}}`,
			then: "failed validation.id", why: "exactly digits",
		},
		{
			name: "a text with a leading zero", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "012"}}`,
			then: "failed validation.id", why: "exactly digits as a number is written",
		},
		{
			name: "a text 1421549.0", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": "1421549.0"}}`,
			then: "failed validation.id", why: "exactly digits",
		},
		{
			name: "empty", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": ""}}`,
			then: "failed validation.id", why: "not an id",
		},
		{
			name: "1.5", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 1.5}}`,
			then: "failed validation.id", why: "not whole",
		},
		{
			name: "-1", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": -1}}`,
			then: "failed validation.id", why: "ids begin at 1",
		},
		{
			name: "0", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": 0}}`, then: "failed validation.id",
			why: "ids begin at 1; 0 is what a missing value becomes elsewhere",
		},
		{
			name: "true", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": true}}`, then: "failed validation.id",
			why: "Python counts True as 1; we do not",
		},
		{
			name: "null", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": null}}`,
			then: "failed validation.id", why: "not an id",
		},
		{
			name: "absent", without: "invoice_details_from_rpa.IVCE_DTL_UID",
			then: "failed validation.id", why: "not an id",
		},
		{
			name: "a list", in: `{"invoice_details_from_rpa": {"IVCE_DTL_UID": [1421549]}}`,
			then: "failed validation.id", why: "one line is main",
		},
		{
			name: "no invoice_details_from_rpa", without: "invoice_details_from_rpa",
			then: "failed validation.not_an_object", why: "no main line, and another try cannot help",
		},
		{
			name: "invoice_details_from_rpa a list", in: `{"invoice_details_from_rpa": [1421549]}`,
			then: "failed validation.not_an_object", why: "as absent",
		},
	}
}

func duplicateRules() []rule {
	return []rule{
		{
			name: "three duplicates", in: `{"post-processing": {"duplicate_detail_uids": [1421550, 1421551, 1421552]}}`,
			then: "written", sql: "main line = 1421549; duplicates = [1421550 1421551 1421552]",
			why: "docs/requirements.md R53",
		},
		{
			name: "absent", without: "post-processing.duplicate_detail_uids", then: "written",
			sql: "duplicates = []", why: "none",
		},
		{name: "no post-processing", without: "post-processing", then: "written", sql: "duplicates = []", why: "none"},
		{
			name: "null", in: `{"post-processing": {"duplicate_detail_uids": null}}`, then: "written",
			sql: "duplicates = []", why: "none",
		},
		{
			name: "post-processing null", in: `{"post-processing": null}`, then: "written",
			sql: "duplicates = []", why: "none",
		},
		{
			name: "not a list", in: `{"post-processing": {"duplicate_detail_uids": 1421550}}`,
			then: "failed validation.not_a_list", sql: "main line = 1421549",
			why: "a writer that sends one id as a number may send several in another unknown form",
		},
		{
			name: "a text of ids", in: `{"post-processing": {"duplicate_detail_uids": "1421550,1421551"}}`,
			then: "failed validation.not_a_list", why: "nothing is guessed about ids",
		},
		{
			name: "post-processing not an object", in: `{"post-processing": [1421550]}`,
			then: "failed validation.not_an_object", why: "whether there are duplicates cannot be known",
		},
		{
			name: "repeated",
			in:   `{"post-processing": {"duplicate_detail_uids": [1421551, 1421550, "1421551", 1421551.0]}}`,
			then: "written", sql: "duplicates = [1421551 1421550]",
			why: "each line once, in the order of first mention",
		},
		{
			name: "containing the main id", in: `{"post-processing": {"duplicate_detail_uids": [1421550, 1421549]}}`,
			then: "written", sql: "duplicates = [1421550]", why: "a line is not a duplicate of itself",
		},
		{
			name: "one wrong id", in: `{"post-processing": {"duplicate_detail_uids": [1421550, "12a"]}}`,
			then: "failed validation.id", sql: "main line = 1421549; duplicates = [1421550]",
			why: "all or nothing: with an unknown line no line is written",
		},
		{
			name: "null inside", in: `{"post-processing": {"duplicate_detail_uids": [null]}}`,
			then: "failed validation.id", why: "as a wrong id",
		},
		{
			name: "2^53+1 inside", in: `{"post-processing": {"duplicate_detail_uids": [9007199254740993]}}`,
			then: "failed validation.inexact_id", why: "as for the main line",
		},
	}
}

func versionRules() []rule {
	return []rule{
		{
			name: "time at the front", in: `{}`, then: "written",
			sql: "version = 2025-12-17 16:30:00.000000Z; version to be recorded first = false; IVCE_TRKG_MSTR.RQST_TS = '2025-12-17T16:30:00.000000Z'", why: "the request's time orders results, whenever they arrive",
		},
		{
			name: "other offset", in: `{"id": "2025-12-17 18:00:00.000000+01:30-0001-1421549"}`, then: "written",
			sql: "version = 2025-12-17 16:30:00.000000Z", why: "times are compared in UTC",
		},
		{
			name: "Z", in: `{"id": "2025-12-17 16:30:00.5Z-0001-1421549"}`, then: "written",
			sql: "version = 2025-12-17 16:30:00.500000Z", why: "UTC",
		},
		{
			name: "T for the blank", in: `{"id": "2025-12-17T10:30:00.123456-06:00-0001-1421549"}`, then: "written",
			sql: "version = 2025-12-17 16:30:00.123456Z", why: "the same time, written as RFC 3339",
		},
		{
			name: "no fraction", in: `{"id": "2025-12-17 10:30:00-06:00-0001-1421549"}`, then: "written",
			sql: "version = 2025-12-17 16:30:00.000000Z", why: "Python leaves a zero fraction out",
		},
		{
			name: "seven digits", in: `{"id": "2025-12-17 10:30:00.1234569-06:00-0001-1421549"}`, then: "written",
			sql: "version = 2025-12-17 16:30:00.123456Z",
			why: "cut to microseconds, not rounded: a version never grows",
		},
		{
			name: "another main id at the end", in: `{"id": "2025-12-17 10:30:00.000000-06:00-0001-77"}`,
			then: "written", sql: "main line = 1421549", why: "the end of the id is a name, not a value",
		},
		{
			name: "no time", in: `{"id": "doc1"}`, then: "written",
			sql: "version = 2025-12-17 16:30:15.000000Z; version to be recorded first = true; IVCE_TRKG_MSTR.RQST_TS = NULL", why: "_ts on the first read; it is stored in sql_writer.version before anything is written, or the next patch would make the document newer than it is",
		},
		{
			name: "no time, version known", in: `{"id": "doc1", "sql_writer": {"version": 1765989000000001}}`,
			then: "written", sql: "version = 2025-12-17 16:30:00.000001Z; version to be recorded first = false",
			why: "once recorded, it stays",
		},
		{
			name: "no time, version not a number", in: `{"id": "doc1", "sql_writer": {"version": "1765989000000001"}}`,
			then: "written",
			sql:  "version = 2025-12-17 16:30:15.000000Z; version to be recorded first = true", why: "as not recorded",
		},
		{
			name: "no time, no _ts", in: `{"id": "doc1", "_ts": "now"}`, then: "written",
			sql: "version = 1970-01-01 00:00:00.000000Z; version to be recorded first = true",
			why: "only handmade payloads have no _ts; they are older than all others",
		},
		{
			name: "impossible date", in: `{"id": "2025-02-30 10:30:00.000000-06:00-0001-1421549"}`, then: "written",
			sql: "version = 2025-12-17 16:30:15.000000Z; version to be recorded first = true",
			why: "as no time: guessing March would order it wrongly",
		},
		{
			name: "no offset", in: `{"id": "2025-12-17 10:30:00.000000-0001-1421549"}`, then: "written",
			sql: "version to be recorded first = true", why: "as no time: two machines would read it differently",
		},
		{
			name: "exactly one hour ahead", in: `{"id": "2025-12-17 17:35:00.000000Z-0001-1421549"}`, then: "written",
			sql: "version = 2025-12-17 17:35:00.000000Z",
			why: "clocks differ, and summer time is mistaken for winter time",
		},
		{
			name: "time in the future", in: `{"id": "2025-12-17 17:35:00.000001Z-0001-1421549"}`,
			then: "retry validation.future", sql: "main line = 1421549",
			why: "more than an hour ahead it would win against every later result of its line; it never enters the ledger",
		},
		{
			name: "recorded version in the future", in: `{"id": "doc1", "sql_writer": {"version": 1999999999000000}}`,
			then: "retry validation.future", why: "as a time in the future",
		},
	}
}
