package expect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"time"
)

// Row is one row of a table: values as text by column name, nil for NULL.
type Row map[string]*string

// document is the part of a stored document that this package checks.
type document struct {
	name     string
	id       string
	lines    []int64 // the main line first
	output   map[string]any
	writer   map[string]any // sql_writer; nil when absent
	versions version
	hasTime  bool
	at       time.Time
}

// version orders two results for one line: the later time wins, and at the same time the larger key.
type version struct {
	us  int64
	key string
}

func (v version) newerThan(o version) bool {
	if v.us != o.us {
		return v.us > o.us
	}
	return v.key > o.key
}

// detailRow returns the required row of a line in IVCE_DTL.
func detailRow(d document, line int64) (Row, error) {
	out, m := d.output, mapper{}
	row := Row{
		"CLN_MFR_AI_NM":     m.text(out["manufacturer_name"]),
		"CLN_MFR_PRT_NUM":   m.text(out["part_number"]),
		"UNSPSC_CD":         m.text(out["unspsc"]),
		"UPC_CD":            m.text(out["upc"]),
		"AKS_PRT_NUM":       m.text(out["aks_part_number"]),
		"ITM_AI_LDSC":       m.text(out["cleaned_description"]),
		"IVCE_LNE_STAT":     m.lineStatus(out["invoice_line_status"]),
		"DATA_VRFN_IND":     m.yesOrNo(out["data_verified"]),
		"WEB_SRCH_URL":      m.text(out["web_search_url"]),
		"MFR_CNFDC_SCR":     m.fourDigits(out["manufacturer_name_confidence"]),
		"PRT_NUM_CNFDC_SCR": m.fourDigits(out["part_number_confidence"]),
		"UNSPSC_CNFDC_SCR":  m.fourDigits(out["unspsc_confidence"]),
		"AI_STG_NM":         m.text(out["stage"]),
		"PRNT_IVCE_DTL_ID":  parent(d, line),
	}
	return row, m.err
}

// trackingRow returns the required row of a line in IVCE_TRKG_MSTR.
func trackingRow(d document, line int64) (Row, error) {
	out, m := d.output, mapper{}
	row := Row{
		"CLN_MFR_AI_NM":     m.text(out["manufacturer_name"]),
		"CLN_MFR_PRT_NUM":   m.text(out["part_number"]),
		"UNSPSC_CD":         m.text(out["unspsc"]),
		"UPC_CD":            m.text(out["upc"]),
		"AKS_PRT_NUM":       m.text(out["aks_part_number"]),
		"ITM_AI_LDSC":       m.text(out["cleaned_description"]),
		"IVCE_LNE_STAT":     m.lineStatus(out["invoice_line_status"]),
		"MFR_CNFDC_SCR":     m.fourDigits(out["manufacturer_name_confidence"]),
		"PRT_NUM_CNFDC_SCR": m.fourDigits(out["part_number_confidence"]),
		"UNSPSC_CNFDC_SCR":  m.fourDigits(out["unspsc_confidence"]),
		"AI_STG_NM":         m.text(out["stage"]),
		"MFR_STG_NM":        m.text(out["manufacturer_name_stage"]),
		"PRT_NUM_STG_NM":    m.text(out["part_number_stage"]),
		"UNSPSC_STG_NM":     m.text(out["unspsc_stage"]),
		"PRCS_STRT_TS":      m.instant(out["processing_started_at"]),
		"PRCS_END_TS":       m.instant(out["processing_completed_at"]),
		"PRNT_IVCE_DTL_ID":  parent(d, line),
		"DATA_VRFN_IND":     m.yesOrNo(out["data_verified"]),
		"WEB_SRCH_URL":      m.text(out["web_search_url"]),
	}
	row["DUP_IND"] = just("N")
	if line != d.lines[0] {
		row["DUP_IND"] = just("Y")
	}
	if d.hasTime {
		row["RQST_TS"] = just(inUTC(d.at))
	} else {
		row["RQST_TS"] = nil
	}
	return row, m.err
}

func parent(d document, line int64) *string {
	if line == d.lines[0] {
		return nil
	}
	return just(fmt.Sprint(d.lines[0]))
}

// mapper converts members to column texts. err is the first value that it cannot convert.
type mapper struct{ err error }

func (m *mapper) unknown(v any, wanted string) *string {
	if m.err == nil {
		m.err = fmt.Errorf("this check expected %s and found %T", wanted, v)
	}
	return nil
}

func (m *mapper) text(v any) *string {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return just(v)
	case json.Number:
		return just(v.String())
	}
	return m.unknown(v, "a text")
}

func (m *mapper) lineStatus(v any) *string {
	s := m.text(v)
	if s != nil && *s == "AI_ERROR" {
		return just("AI-ERROR")
	}
	return s
}

func (m *mapper) yesOrNo(v any) *string {
	switch v {
	case nil:
		return nil
	case true, "Y":
		return just("Y")
	case false, "N":
		return just("N")
	}
	return m.unknown(v, "true, false, \"Y\" or \"N\"")
}

// fourDigits rounds to four decimal places, halves away from zero.
func (m *mapper) fourDigits(v any) *string {
	s := m.text(v)
	if s == nil {
		return nil
	}
	r, ok := new(big.Rat).SetString(*s)
	if !ok {
		return m.unknown(v, "a number")
	}
	return just(r.FloatString(4))
}

func (m *mapper) instant(v any) *string {
	s := m.text(v)
	if s == nil {
		return nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05.999999999-07:00", time.RFC3339Nano} {
		if t, err := time.Parse(layout, *s); err == nil {
			return just(inUTC(t))
		}
	}
	return m.unknown(v, "a time with an offset")
}

func inUTC(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func just(s string) *string { return &s }

// requestTime reads the time at the start of an id, such as "2025-12-17 10:30:00.000000-06:00".
func requestTime(id string) (time.Time, bool) {
	for n := min(len(id), 40); n >= 19; n-- {
		if t, err := time.Parse("2006-01-02 15:04:05.999999999-07:00", id[:n]); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func keyOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
