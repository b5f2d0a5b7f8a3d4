package sample

import (
	"encoding/json"
	"fmt"
	"time"
)

func makers() []string {
	return []string{
		"Brightwater Valve", "Norvell Tools", "Calder Pump Works", "Fenwick Fasteners",
		"Harrow Electric", "Tessel Optics",
		"Ostrava Bearings", "Quillon Instruments", "Müllerström Hydraulik", "Pike & Lowe",
		"O'Dowd Safety", "\"Apex\" Couplings",
		"Société Lormel", "Kōdai Seals", "Redfern Cable", "Stonebridge Filters",
	}
}

func goods() []string {
	return []string{
		"ball valve, brass", "hex bolt, zinc plated", "strain relief connector", "deep groove bearing",
		"pressure gauge 0-10 bar",
		"safety gloves <L>", "cartridge filter 5 µm", "O-ring, nitrile", "proximity switch",
		"hose coupling 3/4\"", "cable gland M20",
		"thread sealant & primer",
	}
}

func stages() []string { return []string{"catalog_match", "web_search", "classifier", "rules"} }

func (g *generator) pick(from []string) string { return from[g.r.IntN(len(from))] }

func (g *generator) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + g.r.IntN(10))
	}
	return string(b)
}

func (g *generator) code() string {
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
	return fmt.Sprintf("%c%c-%s", letters[g.r.IntN(len(letters))], letters[g.r.IntN(len(letters))],
		g.digits(2+g.r.IntN(5)))
}

// confidence makes a number with two to seven decimal places, so that rounding to the column's four is frequent.
func (g *generator) confidence() json.Number {
	if g.r.IntN(20) == 0 {
		return json.Number("1")
	}
	return json.Number("0." + g.digits(2+g.r.IntN(6)))
}

// output makes a process_output. Of 20 values of a member, about one is null and one is absent; the line status is
// always set.
func (g *generator) output(at time.Time) map[string]any {
	out := map[string]any{}
	put := func(member string, value any) {
		switch g.r.IntN(20) {
		case 0:
			out[member] = nil
		case 1:
		default:
			out[member] = value
		}
	}
	maker, part := g.pick(makers()), g.code()
	started := at.Add(time.Duration(100+g.r.IntN(900)) * time.Millisecond)
	put("manufacturer_name", maker)
	put("part_number", part)
	put("unspsc", g.digits(8))
	put("upc", g.digits(12))
	put("aks_part_number", "AKS-"+g.digits(7))
	put("cleaned_description", g.pick(goods())+" "+part)
	put("data_verified", g.r.IntN(2) == 0)
	put("web_search_url", "https://parts.example/search?q="+part+"&lang=en")
	put("stage", g.pick(stages()))
	for _, field := range []string{"manufacturer_name", "part_number", "unspsc"} {
		put(field+"_confidence", g.confidence())
		put(field+"_stage", g.pick(stages()))
	}
	put("processing_started_at", g.when(started))
	put("processing_completed_at", g.when(started.Add(time.Duration(1+g.r.IntN(5_000_000))*time.Microsecond)))
	out["invoice_line_status"] = [...]string{"RC-AI", "RC-AI", "RC-AI", "RC-AI", "DS1", "AI_ERROR"}[g.r.IntN(6)]
	return out
}

// when formats a time as the API does, or one time in three in ISO form, which the Functions host reformats.
func (g *generator) when(t time.Time) string {
	if g.r.IntN(3) == 0 {
		return t.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	return stamp(t)
}
