// Keeps a page fresh while somebody sees it: loads it again every data-poll seconds and puts the new content in its place. Scroll place,
// focus and open details stay. A page with a form that somebody began to fill is left alone. Each command gets a button that copies it.
// Without this script the pages are complete.
"use strict";
(() => {
  const every = Number(document.body.dataset.poll) * 1000;
  const fresh = document.getElementById("fresh");
  const loadedAt = () => performance.now();
  let last = loadedAt(), said = fresh ? fresh.textContent : "";

  // Without https there is no clipboard, so no button. Where it is refused, the command is selected.
  const buttons = () => navigator.clipboard && document.querySelectorAll("code.command").forEach((command) => {
    const button = document.createElement("button");
    const says = (word) => { button.textContent = word; button.setAttribute("aria-label", word + " " + command.textContent); };
    button.type = "button"; button.className = "copy"; button.name = command.textContent;
    button.addEventListener("click", () => navigator.clipboard.writeText(command.textContent).then(() => says("Copied"), () => { getSelection().selectAllChildren(command); says("Selected"); }));
    says("Copy");
    command.after(" ", button);
  });
  buttons();

  // How old the page is stands in the header, and turns red when two polls failed.
  const tell = () => {
    if (!fresh || !every) return;
    const age = Math.round((loadedAt() - last) / 1000);
    fresh.textContent = said + " (" + age + " s ago)";
    document.body.classList.toggle("stale", age * 1000 > 2 * every + 5000);
  };
  setInterval(tell, 1000);
  if (!every) return;

  // A field has what it came with, or somebody changed it. A select without a chosen option came with its first.
  const changed = (e) => e.options ? e.selectedIndex !== Math.max(0, Array.from(e.options).findIndex((o) => o.defaultSelected))
    : /checkbox|radio/.test(e.type) ? e.checked !== e.defaultChecked : e.value !== e.defaultValue;
  const typed = () => Array.from(document.querySelectorAll("main input, main select, main textarea")).some(changed);
  const key = (e) => e && e !== document.body ? e.id || e.getAttribute("href") || e.getAttribute("name") : "";

  const place = (html) => {
    const next = new DOMParser().parseFromString(html, "text/html");
    const main = next.getElementById("main"), now = document.getElementById("main");
    if (!main || !now) return false;
    const focused = now.contains(document.activeElement) ? key(document.activeElement) : "";
    const open = Array.from(now.querySelectorAll("details[open]")).map((d) => d.id);
    const scrolled = Array.from(now.querySelectorAll(".scroll")).map((s) => s.scrollLeft);
    now.replaceWith(document.adoptNode(main));
    buttons();
    open.forEach((id) => { const d = id && document.getElementById(id); if (d) d.open = true; });
    main.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = scrolled[i] || 0; });
    if (focused) {
      const again = Array.from(main.querySelectorAll("a, button, input, select, summary")).find((e) => key(e) === focused);
      if (again) again.focus({ preventScroll: true });
    }
    document.title = next.title;
    const stamp = next.getElementById("fresh");
    if (stamp) said = stamp.textContent;
    return true;
  };

  let busy = false;
  const poll = async () => {
    if (busy || document.hidden || typed()) return;
    busy = true;
    document.getElementById("main").setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(document.body.dataset.self, { credentials: "same-origin", signal: AbortSignal.timeout(30000), headers: { Accept: "text/html" } });
      const kind = answer.headers.get("Content-Type") || "";
      if (kind.startsWith("text/html") && answer.url.startsWith(location.origin) && !typed() && place(await answer.text())) last = loadedAt();
    } catch (e) {
      // The next poll tries again; the header says how old the page is.
    }
    busy = false;
    document.getElementById("main").removeAttribute("aria-busy");
    tell();
  };
  setInterval(poll, every);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && loadedAt() - last > every) poll(); });
})();
