package invoice_test

func textRules() []rule {
	return []rule{
		{
			name: "null", in: `{"process_output": {"part_number": null}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = NULL", why: "the pipeline found none",
		},
		{
			name: "absent", without: "process_output.part_number", then: "written", sql: "CLN_MFR_PRT_NUM = NULL",
			why: "as null: the row has the document's values, also missing ones",
		},
		{
			name: "empty", in: `{"process_output": {"part_number": ""}}`, then: "written", sql: "CLN_MFR_PRT_NUM = ''",
			why: "an empty text is a value",
		},
		{
			name: "blanks", in: `{"process_output": {"part_number": " 4 25 "}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = ' 4 25 '", why: "kept as they are: cleaning is the pipeline's business",
		},
		{
			name: "a number where text belongs", in: `{"process_output": {"part_number": 425}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = '425'", why: "the digits are the value",
		},
		{
			name: "a negative number", in: `{"process_output": {"part_number": -7}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = '-7'", why: "as a number",
		},
		{
			name: "2^53-1 as a number", in: `{"process_output": {"part_number": 9007199254740991}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = '9007199254740991'", why: "the largest exact number",
		},
		{
			name: "2^53+1 as a number", in: `{"process_output": {"upc": 9007199254740993}}`,
			then: "retry validation.inexact", sql: "UPC_CD = NULL",
			why: "it may have had other digits; send it as text",
		},
		{
			name: "425.0", in: `{"process_output": {"part_number": 425.0}}`, then: "retry validation.wrong_type",
			why: "was it 425, 425.0 or 425.00? A part number is not a quantity",
		},
		{
			name: "4E5", in: `{"process_output": {"part_number": 4E5}}`, then: "retry validation.wrong_type",
			why: "a spreadsheet may have read the text 4E5 as a number",
		},
		{
			name: "true", in: `{"process_output": {"part_number": true}}`,
			then: "retry validation.wrong_type", why: "not a text",
		},
		{
			name: "an object", in: `{"process_output": {"part_number": {"value": "425"}}}`,
			then: "retry validation.wrong_type", why: "not a text",
		},
		{
			name: "a list", in: `{"process_output": {"part_number": ["425"]}}`,
			then: "retry validation.wrong_type", why: "not a text",
		},
		{
			name: "as long as can be", in: `{"process_output": {"part_number": "«x*100»"}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = 100 bytes", why: "100 characters fit",
		},
		{
			name: "one character too long", in: `{"process_output": {"part_number": "«x*101»"}}`,
			then: "retry validation.too_long",
			why:  "cutting would make another part number",
		},
		{
			name: "digits too long", in: `{"process_output": {"unspsc": 39131711000}}`,
			then: "retry validation.too_long", why: "as text",
		},
		{
			name: "4-byte characters", in: `{"process_output": {"part_number": "🔩 425"}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = '🔩 425'", why: "nvarchar holds them",
		},
		{
			name: "4-byte characters count twice", in: `{"process_output": {"part_number": "«🔩*50»"}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = 200 bytes", why: "nvarchar counts UTF-16 units: 50 make 100",
		},
		{
			name: "4-byte characters, one too many", in: `{"process_output": {"part_number": "«🔩*50»x"}}`,
			then: "retry validation.too_long", why: "101 units",
		},
		{
			name: "4-byte characters as escapes", in: `{"process_output": {"part_number": "\ud83d\udd29"}}`,
			then: "written", sql: "CLN_MFR_PRT_NUM = '🔩'", why: "the same character",
		},
		{
			name: "accents", in: `{"process_output": {"manufacturer_name": "Böhler Çelik"}}`, then: "written",
			sql: "CLN_MFR_AI_NM = 'Böhler Çelik'", why: "kept",
		},
		{
			name: "quotes and line ends", in: `{"process_output": {"part_number": "O'Neil \"4\"\n"}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = 'O'Neil \"4\"\n'", why: "values are parameters, never SQL text",
		},
		{
			name: "NUL", in: `{"process_output": {"part_number": "42\u00005"}}`, then: "retry validation.nul",
			why: "SQL tools cut a text there: what people see is not what is stored",
		},
		{
			name: "a lone surrogate", in: `{"process_output": {"part_number": "42\ud8005"}}`,
			then: "retry validation.unicode", why: "not a character; every program on the way replaces it",
		},
		{
			name: "bytes that are no UTF-8", old: `"part_number": "425"`, in: "\"part_number\": \"42\xff5\"",
			then: "retry validation.unicode", why: "as a lone surrogate",
		},
		{
			name: "ISO-looking part number", in: `{"process_output": {"part_number": "2025-12-17T10:30:00.1000000Z"}}`,
			then: "written", sql: "CLN_MFR_PRT_NUM = '2025-12-17T10:30:00.1000000Z'; read again = true",
			why: "the Functions host takes it for a date and rewrites it, so the document is read again before this text is used",
		},
		{
			name: "a date alone", in: `{"process_output": {"part_number": "2025-12-17"}}`, then: "written",
			sql: "CLN_MFR_PRT_NUM = '2025-12-17'; read again = false",
			why: "the host rewrites only texts with a T behind the date",
		},
		{
			name: "two wrong members", in: `{"process_output": {"part_number": true, "unspsc": "39131711000"}}`,
			then: "retry validation.wrong_type", why: "the error names both; the first one gives the code",
		},
	}
}

func statusRules() []rule {
	return []rule{
		{
			name: "RC-AI", in: `{"process_output": {"invoice_line_status": "RC-AI"}}`, then: "written",
			sql: "IVCE_LNE_STAT = 'RC-AI'; IVCE_TRKG_MSTR.IVCE_LNE_STAT = 'RC-AI'", why: "docs/requirements.md R55",
		},
		{
			name: "DS1", in: `{"process_output": {"invoice_line_status": "DS1"}}`, then: "written",
			sql: "IVCE_LNE_STAT = 'DS1'", why: "docs/requirements.md R55",
		},
		{
			name: "AI_ERROR", in: `{"process_output": {"invoice_line_status": "AI_ERROR"}}`, then: "written",
			sql: "IVCE_LNE_STAT = 'AI-ERROR'; IVCE_TRKG_MSTR.IVCE_LNE_STAT = 'AI-ERROR'",
			why: "documents and table spell it differently",
		},
		{
			name: "AI-ERROR", in: `{"process_output": {"invoice_line_status": "AI-ERROR"}}`, then: "written",
			sql: "IVCE_LNE_STAT = 'AI-ERROR'", why: "the table's spelling is accepted too",
		},
		{
			name: "unknown line status", in: `{"process_output": {"invoice_line_status": "RC-XX"}}`,
			then: "retry validation.not_allowed", why: "readers of the table would not recognise the status",
		},
		{
			name: "other case", in: `{"process_output": {"invoice_line_status": "rc-ai"}}`,
			then: "retry validation.not_allowed", why: "exact match, as readers of the table compare it",
		},
		{
			name: "a blank at the end", in: `{"process_output": {"invoice_line_status": "DS1 "}}`,
			then: "retry validation.not_allowed", why: "exact match",
		},
		{
			name: "absent", without: "process_output.invoice_line_status", then: "retry validation.required",
			why: "NULL would erase the line's status",
		},
		{
			name: "null", in: `{"process_output": {"invoice_line_status": null}}`,
			then: "retry validation.required", why: "as absent",
		},
		{
			name: "empty", in: `{"process_output": {"invoice_line_status": ""}}`,
			then: "retry validation.required", why: "as absent",
		},
		{
			name: "a number", in: `{"process_output": {"invoice_line_status": 1}}`,
			then: "retry validation.not_allowed", why: "not a status",
		},
	}
}

func numberRules() []rule {
	return []rule{
		{
			name: "a confidence", in: `{"process_output": {"part_number_confidence": 0.9}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.9000'; IVCE_TRKG_MSTR.PRT_NUM_CNFDC_SCR = '0.9000'",
			why: "always four digits after the point, so equal values are equal texts",
		},
		{
			name: "0", in: `{"process_output": {"part_number_confidence": 0}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.0000'", why: "inside the bounds",
		},
		{
			name: "-0", in: `{"process_output": {"part_number_confidence": -0.0}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.0000'", why: "zero",
		},
		{
			name: "1", in: `{"process_output": {"part_number_confidence": 1}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '1.0000'", why: "inside the bounds",
		},
		{
			name: "as text", in: `{"process_output": {"part_number_confidence": "0.95"}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.9500'", why: "a text that is exactly a JSON number is unambiguous",
		},
		{
			name: "with an exponent", in: `{"process_output": {"part_number_confidence": 9.5e-1}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.9500'", why: "the same number",
		},
		{
			name: "half rounds up", in: `{"process_output": {"part_number_confidence": 0.12345}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.1235'",
			why: "half away from zero, as SQL Server rounds decimals; in exact arithmetic",
		},
		{
			name: "just below half", in: `{"process_output": {"part_number_confidence": 0.12344999999999999999999999}}`,
			then: "written", sql: "PRT_NUM_CNFDC_SCR = '0.1235'",
			why: "the host and Cosmos DB keep fractions as doubles, and this double is 0.12345, however many digits are printed",
		},
		{
			name: "just below half as text",
			in:   `{"process_output": {"part_number_confidence": "0.12344999999999999999999999"}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.1234'", why: "a text keeps every digit",
		},
		{
			name: "a tie printed with 17 digits",
			in:   `{"process_output": {"part_number_confidence": 0.00014999999999999999}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.0002'", why: "the same double as 0.00015",
		},
		{
			name: "0.99999", in: `{"process_output": {"part_number_confidence": 0.99999}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '1.0000'", why: "rounding may reach the bound",
		},
		{
			name: "confidence 1.2", in: `{"process_output": {"part_number_confidence": 1.2}}`,
			then: "retry validation.out_of_range",
			why:  "no confidence is more than 1; perhaps it was a percentage",
		},
		{
			name: "1.00001", in: `{"process_output": {"part_number_confidence": 1.00001}}`,
			then: "retry validation.out_of_range", why: "bounds are checked before rounding",
		},
		{
			name: "-1e-400", in: `{"process_output": {"part_number_confidence": -1e-400}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.0000'", why: "as a double it is 0",
		},
		{
			name: "1e-999999999", in: `{"process_output": {"part_number_confidence": 1e-999999999}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = '0.0000'", why: "rounded without being expanded",
		},
		{
			name: "1e999999999", in: `{"process_output": {"part_number_confidence": 1e999999999}}`,
			then: "retry validation.out_of_range", why: "refused without being expanded",
		},
		{
			name: "empty text", in: `{"process_output": {"part_number_confidence": ""}}`,
			then: "retry validation.not_a_number", why: "not a number; null is the way to send no value",
		},
		{
			name: "a text with a blank", in: `{"process_output": {"part_number_confidence": " 0.9"}}`,
			then: "retry validation.not_a_number", why: "exactly a number",
		},
		{
			name: "95%", in: `{"process_output": {"part_number_confidence": "95%"}}`,
			then: "retry validation.not_a_number", why: "text where a number belongs",
		},
		{
			name: "NaN as text", in: `{"process_output": {"part_number_confidence": "NaN"}}`,
			then: "retry validation.not_a_number", why: "not a JSON number, although Python prints it",
		},
		{
			name: "true", in: `{"process_output": {"part_number_confidence": true}}`,
			then: "retry validation.not_a_number", why: "Python counts True as 1; we do not",
		},
		{
			name: "null", in: `{"process_output": {"part_number_confidence": null}}`, then: "written",
			sql: "PRT_NUM_CNFDC_SCR = NULL", why: "no confidence is known",
		},
	}
}

func flagRules() []rule {
	return []rule{
		{
			name: "true", in: `{"process_output": {"data_verified": true}}`, then: "written",
			sql: "DATA_VRFN_IND = 'Y'", why: "indicator columns hold Y and N",
		},
		{
			name: "false", in: `{"process_output": {"data_verified": false}}`, then: "written",
			sql: "DATA_VRFN_IND = 'N'", why: "indicator columns hold Y and N",
		},
		{
			name: "Y", in: `{"process_output": {"data_verified": "Y"}}`, then: "written", sql: "DATA_VRFN_IND = 'Y'",
			why: "the column's own spelling",
		},
		{
			name: "n", in: `{"process_output": {"data_verified": "n"}}`, then: "written", sql: "DATA_VRFN_IND = 'N'",
			why: "the same in lower case",
		},
		{
			name: "1", in: `{"process_output": {"data_verified": 1}}`, then: "written", sql: "DATA_VRFN_IND = 'Y'",
			why: "how SQL Server shows a bit",
		},
		{
			name: "0.0", in: `{"process_output": {"data_verified": 0.0}}`, then: "written", sql: "DATA_VRFN_IND = 'N'",
			why: "the same number as 0",
		},
		{
			name: "null", in: `{"process_output": {"data_verified": null}}`, then: "written",
			sql: "DATA_VRFN_IND = NULL", why: "no value",
		},
		{
			name: "yes", in: `{"process_output": {"data_verified": "yes"}}`, then: "retry validation.flag",
			why: "nothing is guessed",
		},
		{
			name: "1 as text", in: `{"process_output": {"data_verified": "1"}}`, then: "retry validation.flag",
			why: "nothing is guessed",
		},
		{
			name: "true as text", in: `{"process_output": {"data_verified": "true"}}`, then: "retry validation.flag",
			why: "nothing is guessed",
		},
		{name: "2", in: `{"process_output": {"data_verified": 2}}`, then: "retry validation.flag", why: "neither"},
		{
			name: "empty", in: `{"process_output": {"data_verified": ""}}`, then: "retry validation.flag",
			why: "not a flag; null is the way to send no value",
		},
	}
}

func timeRules() []rule {
	const column = "IVCE_TRKG_MSTR.PRCS_STRT_TS = "
	return []rule{
		{
			name: "a stamp", in: `{"process_output": {"processing_started_at": "2025-12-17 10:30:15.123456-06:00"}}`,
			then: "written", sql: column + "'2025-12-17T16:30:15.123456Z'",
			why: "the layout of docs/requirements.md R13, converted to UTC",
		},
		{
			name: "RFC 3339", in: `{"process_output": {"processing_started_at": "2025-12-17T16:30:15Z"}}`,
			then: "written", sql: column + "'2025-12-17T16:30:15.000000Z'; read again = false",
			why: "the same instant, however the host prints it",
		},
		{
			name: "other offset", in: `{"process_output": {"processing_started_at": "2025-12-17T22:00:15.1+05:30"}}`,
			then: "written", sql: column + "'2025-12-17T16:30:15.100000Z'", why: "converted to UTC",
		},
		{
			name: "nine digits", in: `{"process_output": {"processing_started_at": "2025-12-17T16:30:15.123456999Z"}}`,
			then: "written", sql: column + "'2025-12-17T16:30:15.123456Z'", why: "cut to microseconds",
		},
		{
			name: "ten digits", in: `{"process_output": {"processing_started_at": "2025-12-17T16:30:15.1234567890Z"}}`,
			then: "retry validation.time", why: "no clock has so many digits: something else is wrong",
		},
		{
			name: "no offset", in: `{"process_output": {"processing_started_at": "2025-12-17 10:30:15.123456"}}`,
			then: "retry validation.no_offset", why: "two machines would read two times",
		},
		{
			name: "offset without a colon",
			in:   `{"process_output": {"processing_started_at": "2025-12-17 10:30:15-0600"}}`,
			then: "retry validation.no_offset", why: "one layout for times and ids; in an id it would be a counter",
		},
		{
			name: "a date alone", in: `{"process_output": {"processing_started_at": "2025-12-17"}}`,
			then: "retry validation.time", why: "not a time",
		},
		{
			name: "impossible date", in: `{"process_output": {"processing_started_at": "2025-02-29 10:30:15-06:00"}}`,
			then: "retry validation.date", why: "2025 is not a leap year; nothing is guessed",
		},
		{
			name: "24:00", in: `{"process_output": {"processing_started_at": "2025-12-17 24:00:00Z"}}`,
			then: "retry validation.date", why: "is it this day or the next?",
		},
		{
			name: "a leap second", in: `{"process_output": {"processing_started_at": "2016-12-31T23:59:60Z"}}`,
			then: "retry validation.date", why: "SQL Server has no such time",
		},
		{
			name: "year 0", in: `{"process_output": {"processing_started_at": "0000-01-01 00:00:00Z"}}`,
			then: "retry validation.date", why: "SQL Server begins with year 1",
		},
		{
			name: "year 0 in UTC", in: `{"process_output": {"processing_started_at": "0001-01-01 00:00:00+01:00"}}`,
			then: "retry validation.date", why: "in UTC it is year 0",
		},
		{
			name: "something behind",
			in:   `{"process_output": {"processing_started_at": "2025-12-17 10:30:15-06:00 CST"}}`,
			then: "retry validation.time", why: "exactly a time",
		},
		{
			name: "a number", in: `{"process_output": {"processing_started_at": 1765989015}}`,
			then: "retry validation.wrong_type", why: "seconds or milliseconds?",
		},
		{
			name: "empty", in: `{"process_output": {"processing_started_at": ""}}`, then: "retry validation.time",
			why: "not a time; null is the way to send no value",
		},
		{
			name: "null", in: `{"process_output": {"processing_started_at": null}}`, then: "written",
			sql: column + "NULL", why: "not known",
		},
	}
}
