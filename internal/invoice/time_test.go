package invoice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/invoice"
)

func ExampleTimeOfID() {
	us, ok := invoice.TimeOfID("2025-12-17 10:30:00.000000-06:00-0001-1421549")
	fmt.Println(time.UnixMicro(us).UTC(), ok)
	_, ok = invoice.TimeOfID("doc1")
	fmt.Println(ok)
	// Output:
	// 2025-12-17 16:30:00 +0000 UTC true
	// false
}

func ExampleStamp() {
	chicago := time.FixedZone("CST", -6*60*60)
	fmt.Println(invoice.Stamp(time.Date(2025, 12, 17, 16, 30, 15, 123456789, time.UTC), chicago))
	// Output: 2025-12-17 10:30:15.123456-06:00
}

func TestAStampIsReadAsItWasWritten(t *testing.T) {
	chicago, err := time.LoadLocation("America/Chicago")
	require.NoError(t, err)
	want := time.Date(2025, 12, 17, 16, 30, 15, 123456000, time.UTC)
	for _, text := range []string{
		invoice.Stamp(want, chicago), invoice.Stamp(want, time.UTC), "2025-12-17 10:30:15.123456",
		"2025-12-17T16:30:15.123456Z",
	} {
		got, ok := invoice.ParseStamp(text, chicago)
		require.True(t, ok, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
		require.Equal(t, chicago, got.Location())
	}
	summer, ok := invoice.ParseStamp("2025-07-01 10:00:00", chicago)
	require.True(t, ok)
	require.Equal(t, "2025-07-01T10:00:00-05:00", summer.Format(time.RFC3339), "by the clock of that day")
	for _, text := range []string{
		"", "yesterday", "2025-12-17", "2025-12-17 10:30:15.123456-06:00-0001-1",
		"2025-12-17 10:30:15-0001", "2025-12-17 10:30:15 ",
		"2025-02-29 10:30:15", "2025-12-17 10:30:15ZZ", "2025-12-17 10:30:15+25:00",
	} {
		_, ok := invoice.ParseStamp(text, chicago)
		require.False(t, ok, text)
	}
}

func TestTheTimeOfAnIDSurvivesEveryLayoutAndOffset(t *testing.T) {
	first := time.Date(1, 1, 3, 0, 0, 0, 0, time.UTC).UnixMicro()
	last := time.Date(9999, 12, 29, 0, 0, 0, 0, time.UTC).UnixMicro()
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(first, last).Draw(t, "us")
		offset := rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "offset in minutes")
		layout := "2006-01-02" + rapid.SampledFrom([]string{" ", "T"}).Draw(t, "separator") + "15:04:05" +
			rapid.SampledFrom([]string{".000000", ".0000000", ".000000000", ".999999"}).Draw(t, "fraction") +
			rapid.SampledFrom([]string{"-07:00", "Z07:00"}).Draw(t, "zone")
		at := time.UnixMicro(us).In(time.FixedZone("", offset*60))
		id := at.Format(layout) + rapid.SampledFrom([]string{"", "-0001-1421549", "-x", "_y"}).Draw(t, "rest")
		got, ok := invoice.TimeOfID(id)
		if !ok || got != us {
			t.Fatalf("%s: %d %v, want %d", id, got, ok, us)
		}
	})
}

func TestWhatIsNoTimeIsNotGuessed(t *testing.T) {
	for _, id := range []string{
		"", "doc1", "2025-12-17", "2025-12-17 10:30:00", "2025-12-17 10:30:00.000000", "2025-12-17 10:30:00.-06:00",
		"2025-12-17 10:30:00,000000-06:00", "2025-12-17 10:30-06:00", "2025-13-01 10:30:00Z", "2025-00-01 10:30:00Z",
		"2025-02-29 10:30:00Z", "2025-12-17 24:00:00Z", "2025-12-17 10:60:00Z", "2025-12-17 10:30:60Z",
		"2025-12-17 10:30:00+24:00", "2025-12-17 10:30:00+06:60", "2025-12-17 10:30:00-0600", "2025-12-17 10:30:00-06",
		"2025-12-17 10:30:00-06:000", "2025-12-17 10:30:00-06:00:30", "2025-12-17 10:30:00z", "2025-12-17t10:30:00Z",
		" 2025-12-17 10:30:00Z", "2025-12-17  0:30:00Z", "0000-12-17 10:30:00Z", "9999-12-31 23:59:59-01:00",
		"2O25-12-17 10:30:00Z", "2025-12-17 10:30:00.12345x-06:00", "２025-12-17 10:30:00Z",
	} {
		_, ok := invoice.TimeOfID(id)
		require.False(t, ok, id)
	}
}

func TestStampsAreReadBackAsTheTimeTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(0, 4102444800_000000).Draw(t, "us")
		zone := time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(t, "offset in minutes")*60)
		got, ok := invoice.TimeOfID(invoice.Stamp(time.UnixMicro(us), zone))
		if !ok || got != us {
			t.Fatalf("%d became %d", us, got)
		}
	})
}
