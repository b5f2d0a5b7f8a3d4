package browser_test

import (
	"bytes"
	"cmp"
	"flag"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ui"
	"sqlwriter/test/browser"
	"sqlwriter/test/storybook"
)

var storybookFlag = flag.String("storybook", "",
	"write every story to this folder, with pictures of it, and the pictures of docs/pages.md")

// looks are how each story is pictured, by the ends of the pictures' names.
func looks() map[string]browser.Look {
	return map[string]browser.Look{
		"wide-light": {Width: browser.Wide}, "wide-dark": {Width: browser.Wide, Dark: true},
		"phone-light": {Width: browser.Phone}, "phone-dark": {Width: browser.Phone, Dark: true},
	}
}

// The pictures of docs/pages.md, by story and look.
const picturesFolder = "../../docs/pages"

func pictures() []string {
	return []string{
		"overview-stopped-wide-light", "overview-flowing-wide-dark", "documents-mixed-wide-light",
		"document-failed-wide-light", "retry-few-wide-light",
		"run-works-wide-dark", "findings-open-wide-light", "overview-stopped-phone-dark",
	}
}

// The storybook is a folder of files that a browser opens without a server: an index, each story, and what all stories
// use.
func TestStorybook(t *testing.T) {
	folder := *storybookFlag
	if folder == "" {
		folder = t.TempDir()
	}
	write := func(name string, content []byte) {
		file := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, content, 0o644))
	}
	type entry struct {
		storybook.Story

		Looks []string
	}
	var entries []entry
	for _, s := range storybook.Stories() {
		request, site := s.Request(), s.Site()
		request.Root = "./"
		a := site.Serve(t.Context(), s.Calls(), request)
		if a.Status == http.StatusSeeOther {
			continue
		}
		// a file cannot be polled
		write(s.Name+".html", []byte(strings.Replace(a.Body, `data-poll="15"`, `data-poll="0"`, 1)))
		for _, link := range regexp.MustCompile(`"\./(assets/[^"]+)"`).FindAllStringSubmatch(a.Body, -1) {
			write(link[1],
				[]byte(site.Serve(t.Context(), s.Calls(), ui.Request{Method: http.MethodGet, Path: link[1]}).Body))
		}
		entries = append(entries, entry{s, slices.Sorted(maps.Keys(looks()))})
	}
	var index bytes.Buffer
	require.NoError(t, template.Must(template.New("index").Parse(indexPage)).Execute(&index, entries))
	write("index.html", index.Bytes())
	for _, s := range entries {
		require.FileExists(t, filepath.Join(folder, s.Name+".html"))
	}

	if *storybookFlag == "" {
		return // the pictures take minutes
	}
	t.Run("pictures", func(t *testing.T) {
		// Without JavaScript, which writes the age of the page: the same story has the same picture.
		eachStory(t, browser.Look{NoScript: true}, func(t *testing.T, name string, tab *browser.Tab) {
			for end, look := range looks() {
				tab.Resize(look.Width)
				tab.Scheme(look.Dark)
				picture := tab.Screenshot()
				write("pictures/"+name+"-"+end+".png", picture)
				if slices.Contains(pictures(), name+"-"+end) {
					require.NoError(t,
						os.WriteFile(filepath.Join(picturesFolder, name+"-"+end+".png"), smaller(t, picture), 0o644))
				}
			}
		})
	})
}

const indexPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Storybook</title>
<style>body { font-family: system-ui, sans-serif; margin: 1.5rem; }
img { border: 1px solid #888; max-height: 18rem; vertical-align: top; }</style></head>
<body><h1>Every page in every state</h1>
<p>Canned data of test/storybook; a link to another page leads nowhere.
The pictures are drawn with the fonts of the tests' browser.</p>
{{range $s := .}}<h2 id="{{.Name}}"><a href="{{.Name}}.html">{{.Name}}</a></h2><p>{{.Says}}</p>
<p>{{range .Looks}}<a href="pictures/{{$s.Name}}-{{.}}.png"><img loading="lazy" src="pictures/{{$s.Name}}-{{.}}.png" alt="{{$s.Name}}, {{.}}"></a> {{end}}</p>
{{end}}</body></html>
`

// smaller is a picture with the 256 colors that it has most; every other becomes the nearest of them.
func smaller(t *testing.T, picture []byte) []byte {
	t.Helper()
	whole, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	counts := map[color.Color]int{}
	for y := range whole.Bounds().Dy() {
		for x := range whole.Bounds().Dx() {
			counts[whole.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(rgb(a), rgb(b)))
	})
	few := color.Palette(colors[:min(len(colors), 256)])
	nearest := map[color.Color]uint8{}
	for _, c := range colors {
		nearest[c] = uint8(few.Index(c))
	}
	drawn := image.NewPaletted(whole.Bounds(), few)
	for y := range whole.Bounds().Dy() {
		for x := range whole.Bounds().Dx() {
			drawn.SetColorIndex(x, y, nearest[whole.At(x, y)])
		}
	}
	var b bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, drawn))
	return b.Bytes()
}

// rgb orders colors that a picture has equally often.
func rgb(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return string([]rune{rune(r >> 8), rune(g >> 8), rune(b >> 8)})
}

// docs/pages.md shows the pictures that make storybook writes, and each is small.
func TestPicturesOfThePagesAreKept(t *testing.T) {
	const largest = 60_000
	page, err := os.ReadFile(picturesFolder + ".md")
	require.NoError(t, err)
	kept, err := filepath.Glob(picturesFolder + "/*")
	require.NoError(t, err)
	require.Len(t, kept, len(pictures()), "a picture that nothing writes")
	for _, name := range pictures() {
		file, err := os.Stat(filepath.Join(picturesFolder, name+".png"))
		require.NoError(t, err, "make storybook")
		require.LessOrEqual(t, file.Size(), int64(largest), name)
		require.Contains(t, string(page), "](pages/"+name+".png)")
	}
}
