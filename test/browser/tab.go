package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Look is how a tab shows pages.
type Look struct {
	// Width of the window in pixels: Wide if 0. Up to 500 it is a phone's.
	Width int64
	// Dark asks for dark pages.
	Dark bool
	// NoScript switches JavaScript off.
	NoScript bool
	// Headers go with each request: those of the platform's sign-in, say.
	Headers map[string]string
}

// Widths of a desk's window and of a small phone.
const (
	Wide  = 1280
	Phone = 360
)

// height of every window.
const height = 800

// Tab is a tab with a page. It belongs to one test and one goroutine.
type Tab struct {
	t       testing.TB
	ctx     context.Context //nolint:containedctx // chromedp's handle of the tab
	browser *Browser
	look    Look
	// stopped: the page's clock stands still, since Advance.
	stopped bool

	mu       sync.Mutex
	messages []string
}

// Open opens a page in a tab of its own, and waits until it is loaded. The end of the test closes it.
func (b *Browser) Open(t testing.TB, address string, look Look) *Tab {
	t.Helper()
	ctx, _ := chromedp.NewContext(b.ctx)
	tab := &Tab{t: t, ctx: ctx, browser: b, look: look}
	t.Cleanup(func() {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		assert.NoError(t, chromedp.Cancel(limited), "the tab does not close")
	})
	require.NoError(t, chromedp.Listen(ctx, tab.hear))
	headers := network.Headers{}
	for name, value := range look.Headers {
		headers[name] = value
	}
	send(tab, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: headers})
	tab.Resize(look.Width)
	tab.Scheme(look.Dark)
	tab.Scripts(!look.NoScript)
	tab.Go(address)
	return tab
}

// hear keeps what the page or the browser writes to the console.
func (tab *Tab) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		// That a page answers 403 or 503 is not a mistake of the page; a file that it lacks is.
		if e.Entry.Source == log.EntrySourceNetwork && !strings.Contains(e.Entry.URL, "/assets/") {
			return
		}
		said = fmt.Sprintf("%s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		said = string(e.Type) + ":"
		for _, arg := range e.Args {
			said += " " + string(arg.Value) + arg.Description
		}
	case *runtime.EventExceptionThrown:
		said = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			said += " " + e.ExceptionDetails.Exception.Description
		}
	default:
		return
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.messages = append(tab.messages, said)
}

// Messages are what pages of the tab wrote to the console so far, and what the browser refused to do for them.
func (tab *Tab) Messages() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.messages)
}

// within runs a step, for at most patience.
func within[T any](tab *Tab, what string, step chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, step)
	require.NoError(tab.t, err, what)
	return value
}

// send gives the browser a command of its protocol.
func send[P, R any](tab *Tab, command cdp.Command[P, R], params P) R {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	require.NoError(tab.t, err, command.Method)
	return result
}

// Resize gives the window another width. Widths up to 500 are a phone's.
func (tab *Tab) Resize(width int64) {
	tab.t.Helper()
	if width == 0 {
		width = Wide
	}
	tab.look.Width = width
	const phones = 500
	send(tab, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{
			Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width <= phones,
		})
}

// Scheme asks the page for dark or light colors.
func (tab *Tab) Scheme(dark bool) {
	tab.t.Helper()
	tab.look.Dark = dark
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	send(tab, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
}

// Scripts switches JavaScript on or off for pages that are loaded from now on.
func (tab *Tab) Scripts(on bool) {
	tab.t.Helper()
	tab.look.NoScript = !on
	send(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// Go loads a page into the tab, and answers its status.
func (tab *Tab) Go(address string) int64 {
	tab.t.Helper()
	return tab.load("load "+address, chromedp.Navigate(address))
}

// Follow clicks the first element of a CSS selector, a link or a button of a form, waits for the page that it leads to,
// and answers the status of that page.
func (tab *Tab) Follow(selector string) int64 {
	tab.t.Helper()
	return tab.load("follow "+selector, chromedp.Click(chromedp.CSS(selector)))
}

func (tab *Tab) load(what string, step chromedp.Action[chromedp.Void]) int64 {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	answer, err := chromedp.RunResponse(ctx, step)
	require.NoError(tab.t, err, what)
	require.NotNil(tab.t, answer, what)
	return answer.Status
}

// Click clicks the first element of a CSS selector, when it is to be seen.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	within(tab, "click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Type types into the first field of a CSS selector.
func (tab *Tab) Type(selector, text string) {
	tab.t.Helper()
	within(tab, "type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press presses keys where the focus is: text, or Tab and Enter.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	within(tab, "press keys", chromedp.KeyEvent(keys))
}

// Keys for Press.
const (
	TabKey = "\t"
	Enter  = "\r"
)

// Text is the text that a person sees in the first element of a CSS selector.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	return within(tab, "read "+selector, chromedp.Text(chromedp.CSS(selector)))
}

// Address is the page's.
func (tab *Tab) Address() string {
	tab.t.Helper()
	return within(tab, "the address", chromedp.Location())
}

// Eval is the value of a JavaScript expression in the page. It works without the page's scripts, too.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return within(tab, expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Until waits until a JavaScript expression in the page is true, also across loads of pages.
func (tab *Tab) Until(what, expression string) {
	tab.t.Helper()
	const pause = 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	for tick := time.NewTicker(pause); ; {
		if yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)); err == nil && yes {
			tick.Stop()
			return
		}
		select {
		case <-ctx.Done():
			require.FailNow(tab.t, "not within "+patience.String()+": "+what, expression)
		case <-tick.C:
		}
	}
}

// Sideways are the elements that make the page wider than the window, so that a person must scroll sideways to read it.
func (tab *Tab) Sideways() []string {
	tab.t.Helper()
	return Eval[[]string](tab, `(() => {
		const page = document.documentElement, wide = page.clientWidth;
		if (page.scrollWidth <= wide) return [];
		// What is placed absolutely scrolls with the box that it is placed in, and no other.
		const box = (e) => getComputedStyle(e).position === "absolute" ? e.offsetParent : e.parentElement;
		const scrolls = (e) => e !== null && e !== document.body &&
			(getComputedStyle(e).overflowX !== "visible" || scrolls(box(e)));
		return Array.from(document.body.querySelectorAll("*"))
			.filter((e) => e.getBoundingClientRect().right > wide && !scrolls(box(e)))
			.map((e) => e.tagName.toLowerCase() + "." + e.className + " to " +
				Math.round(e.getBoundingClientRect().right) + " of " + wide + ": " +
				e.textContent.trim().slice(0, 40))
			.concat("the page is wider than the window");
	})()`)
}

// Advance moves the clock of the page on: its timers ring, and what they ask for is answered meanwhile. After the first
// call that clock stands still between calls.
func (tab *Tab) Advance(d time.Duration) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	tab.stopped = true
	budget := float64(d.Milliseconds())
	_, err := chromedp.Run(ctx, chromedp.WaitEvent(emulation.VirtualTimeBudgetExpired, nil,
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetVirtualTimePolicy,
				emulation.SetVirtualTimePolicyParams{
					Policy: emulation.VirtualTimePolicyPauseIfNetworkFetchesPending, Budget: &budget,
				})
			return err
		})))
	require.NoError(tab.t, err, "the page's clock")
}

// MayUseClipboard lets pages write and read the clipboard: a headless browser refuses it, as it has nobody to ask.
func (tab *Tab) MayUseClipboard() {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	for _, name := range []string{"clipboard-write", "clipboard-read"} {
		_, err := chromedp.CallBrowser(ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			Permission: &cdpbrowser.PermissionDescriptor{Name: name}, Setting: cdpbrowser.PermissionSettingGranted,
		})
		require.NoError(tab.t, err, name)
	}
}

// Show brings the window back that Hide minimized. The page of a minimized window is hidden, and knows it.
func (tab *Tab) Show() { tab.t.Helper(); tab.window(cdpbrowser.WindowStateNormal) }

// Hide minimizes the tab's window.
func (tab *Tab) Hide() { tab.t.Helper(); tab.window(cdpbrowser.WindowStateMinimized) }

func (tab *Tab) window(state cdpbrowser.WindowState) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	window, err := chromedp.CallBrowser(ctx, cdpbrowser.GetWindowForTarget,
		cdpbrowser.GetWindowForTargetParams{TargetID: chromedp.FromContext(ctx).Target.TargetID})
	require.NoError(tab.t, err, "the tab's window")
	_, err = chromedp.CallBrowser(ctx, cdpbrowser.SetWindowBounds,
		cdpbrowser.SetWindowBoundsParams{WindowID: window.WindowID, Bounds: &cdpbrowser.Bounds{WindowState: state}})
	require.NoError(tab.t, err, "the tab's window")
}

// Screenshot is a picture of the whole page, as PNG.
func (tab *Tab) Screenshot() []byte {
	tab.t.Helper()
	const png = 100
	return within(tab, "screenshot", chromedp.FullScreenshot(png))
}
