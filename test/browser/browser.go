// Package browser shows pages to tests in a headless Chromium: what a person at a desk or with a phone sees, reads and
// types.
//
// `make browser` installs it, with axe-core, the accessibility checker (Linux on x86_64). Start gives a test a browser,
// and Open a tab with a page. A Tab fails its test at the first step that does not work. Nothing but loopback can be
// reached.
//
//	tab := browser.Start(t).Open(t, "http://127.0.0.1:7071/api/ui/", browser.Look{Dark: true})
//	tab.Follow("nav a[href$=documents]")
//	require.Contains(t, tab.Text("h1"), "3 documents failed")
//	tab.Until("the drain ends", `document.querySelector("h1").textContent.includes("flow")`)
//	tab.Accessible()
//	require.Empty(t, tab.Messages())
package browser

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Variable names the environment variable with the folder of the browser. If it is not set, the folder is
// .tools/browser of the checkout, and a test without a browser is skipped. make sets it, so that no test of make's is
// skipped by mistake.
const Variable = "SQLWRITER_TEST_BROWSER"

// Browser is a process of its own, with a new profile. Its tabs may be used in parallel.
type Browser struct {
	ctx context.Context //nolint:containedctx // chromedp's handle of the browser
	axe string
}

// Start starts a browser for one test, or skips the test with the reason. The end of the test stops it.
func Start(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes its time: make pages")
	}
	folder := installed(t)
	axe, err := os.ReadFile(filepath.Join(folder, "axe.min.js"))
	require.NoError(t, err, "make browser installs it")
	home := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(filepath.Join(folder, "chromium")),
		chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.NoSandbox, // root has none, and the pages are ours
		chromedp.DisableGPU,
		chromedp.Flag("font-render-hinting", "none"), // a screenshot is the same on every machine
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Env(
			"LD_LIBRARY_PATH="+filepath.Join(folder, "lib"), "FONTCONFIG_FILE="+filepath.Join(folder, "fonts.conf"),
			"HOME="+home, "TMPDIR="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "TZ=UTC", "LANG=en_US.UTF-8",
		),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator, chromedp.WithErrorf(t.Logf))
	t.Cleanup(func() {
		defer stop()
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		require.NoError(t, chromedp.Cancel(limited), "the browser does not end")
	})
	require.NoError(t, chromedp.Do(ctx), "the browser does not start")
	return &Browser{ctx: ctx, axe: string(axe)}
}

// patience is how long a step of a test may take.
const patience = 30 * time.Second

// installed is the folder of the browser.
func installed(t testing.TB) string {
	t.Helper()
	if folder := os.Getenv(Variable); folder != "" {
		require.FileExists(t, filepath.Join(folder, "chromium"), "%s: make browser installs it", Variable)
		return folder
	}
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			break
		}
		require.NotEqual(t, folder, filepath.Dir(folder), "the test runs outside of the checkout")
		folder = filepath.Dir(folder)
	}
	folder = filepath.Join(folder, ".tools", "browser")
	if _, err := os.Stat(filepath.Join(folder, "chromium")); err != nil {
		t.Skip("no browser: make browser installs it (Linux on x86_64)")
	}
	return folder
}
