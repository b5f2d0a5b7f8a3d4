package invoice

// The reasons in Column.Assumed.
const (
	assumedName     = "no document names this column; the name is ours"
	assumedPath     = "no document names the member; the path is ours"
	assumedNamePath = "no document names the column or the member; both are ours"
)

// Columns is the column table. Its order is the order of Document.Values and of every statement; a new column goes to
// the end of its table's part. All lengths are assumed, because no document gives one; the check at the start compares
// them with the deployment's schema.
func Columns() []Column {
	confidence := func(t Table, name, path, meaning string) Column {
		return Column{
			Table: t, Name: name, Source: FromDocument, Path: path, Kind: Decimal, Precision: 5, Scale: 4,
			Min: "0", Limit: "1", Assumed: assumedNamePath, Meaning: meaning,
		}
	}
	text := func(t Table, name, path string, limit int, assumed, meaning string) Column {
		return Column{
			Table: t, Name: name, Source: FromDocument, Path: path, Kind: Text, Max: limit,
			Assumed: assumed, Meaning: meaning,
		}
	}
	status := func(t Table, assumed string) Column {
		return Column{
			Table: t, Name: StatusColumn, Source: FromDocument, Path: statusPath, Kind: Text,
			Max: 20, Required: true, Values: []string{"RC-AI", "DS1", StatusAIError}, Assumed: assumed,
			Meaning: "line status; AI_ERROR in a document is written as AI-ERROR",
		}
	}
	return []Column{
		text(Detail, "CLN_MFR_AI_NM", "process_output.manufacturer_name", 255, "", "manufacturer name"),
		text(Detail, "CLN_MFR_PRT_NUM", "process_output.part_number", 100, "", "manufacturer's part number"),
		text(Detail, "UNSPSC_CD", "process_output.unspsc", 10, "", "UNSPSC code"),
		text(Detail, "UPC_CD", "process_output.upc", 20, assumedPath, "UPC code"),
		text(Detail, "AKS_PRT_NUM", "process_output.aks_part_number", 50, assumedPath, "AKS part number"),
		text(Detail, "ITM_AI_LDSC", "process_output.cleaned_description", 1000, assumedPath, "cleaned description"),
		status(Detail, ""),
		{
			Table: Detail, Name: "DATA_VRFN_IND", Source: FromDocument,
			Path: "process_output.data_verified", Kind: Flag,
			Max: 1, Assumed: assumedPath, Meaning: "verification flag",
		},
		text(Detail, "WEB_SRCH_URL", "process_output.web_search_url", 2000, assumedPath, "web search URL"),
		confidence(Detail, "MFR_CNFDC_SCR", "process_output.manufacturer_name_confidence",
			"confidence of the manufacturer name"),
		confidence(Detail, "PRT_NUM_CNFDC_SCR", "process_output.part_number_confidence",
			"confidence of the part number"),
		confidence(Detail, "UNSPSC_CNFDC_SCR", "process_output.unspsc_confidence", "confidence of the UNSPSC code"),
		text(Detail, "AI_STG_NM", "process_output.stage", 50, assumedNamePath, "stage that gave the final answer"),
		{
			Table: Detail, Name: "PRNT_IVCE_DTL_ID", Source: FromParent, Kind: Integer,
			Meaning: "main line of a duplicate, NULL for the main line",
		},

		text(Tracking, "CLN_MFR_AI_NM", "process_output.manufacturer_name", 255, assumedName, "manufacturer name"),
		text(Tracking, "CLN_MFR_PRT_NUM", "process_output.part_number", 100, assumedName, "manufacturer's part number"),
		text(Tracking, "UNSPSC_CD", "process_output.unspsc", 10, assumedName, "UNSPSC code"),
		text(Tracking, "UPC_CD", "process_output.upc", 20, assumedNamePath, "UPC code"),
		text(Tracking, "AKS_PRT_NUM", "process_output.aks_part_number", 50, assumedNamePath, "AKS part number"),
		text(Tracking, "ITM_AI_LDSC", "process_output.cleaned_description", 1000,
			assumedNamePath, "cleaned description"),
		status(Tracking, assumedName),
		confidence(Tracking, "MFR_CNFDC_SCR", "process_output.manufacturer_name_confidence",
			"confidence of the manufacturer name"),
		confidence(Tracking, "PRT_NUM_CNFDC_SCR", "process_output.part_number_confidence",
			"confidence of the part number"),
		confidence(Tracking, "UNSPSC_CNFDC_SCR", "process_output.unspsc_confidence", "confidence of the UNSPSC code"),
		text(Tracking, "AI_STG_NM", "process_output.stage", 50, assumedNamePath, "stage that gave the final answer"),
		text(Tracking, "MFR_STG_NM", "process_output.manufacturer_name_stage", 50, assumedNamePath,
			"stage that found the manufacturer name"),
		text(Tracking, "PRT_NUM_STG_NM", "process_output.part_number_stage", 50, assumedNamePath,
			"stage that found the part number"),
		text(Tracking, "UNSPSC_STG_NM", "process_output.unspsc_stage", 50, assumedNamePath,
			"stage that found the UNSPSC code"),
		{
			Table: Tracking, Name: "RQST_TS", Source: FromRequestTime, Kind: Time,
			Assumed: assumedName, Meaning: "time of the request, from the document's id",
		},
		{
			Table: Tracking, Name: "PRCS_STRT_TS", Source: FromDocument, Path: "process_output.processing_started_at",
			Kind: Time, Assumed: assumedNamePath, Meaning: "processing started",
		},
		{
			Table: Tracking, Name: "PRCS_END_TS", Source: FromDocument, Path: "process_output.processing_completed_at",
			Kind: Time, Assumed: assumedNamePath, Meaning: "processing completed",
		},
		{
			Table: Tracking, Name: "DUP_IND", Source: FromDuplicate, Kind: Flag, Max: 1,
			Assumed: assumedName, Meaning: "Y for a duplicate, N for the main line",
		},
		{
			Table: Tracking, Name: "PRNT_IVCE_DTL_ID", Source: FromParent, Kind: Integer,
			Assumed: assumedName, Meaning: "main line of a duplicate, NULL for the main line",
		},
	}
}
