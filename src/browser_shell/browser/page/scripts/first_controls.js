// Wait until the page shows a control, or until a page without controls has been quiet for QUIET_MS.
// An application that loads its content by script often shows only its menus at first. Its controls count when the page
// has been quiet for QUIET_MS, or SETTLE_MS after the first control appeared.
// Returns whether the page showed a control or became quiet in time.
async function (milliseconds) {
  const { isVisible, nextFrame } = browserShell;
  const CONTROLS =
    "a[href], button, input:not([type=hidden]), select, textarea, summary, canvas, video, audio, iframe, object, embed, " +
    "[role=button], [role=link], [role=tab], [role=menuitem], [role=textbox], [tabindex], [contenteditable]";
  const QUIET_MS = 300, SETTLE_MS = 1500;
  const LOADERS = ["fetch", "xmlhttprequest"];
  if (location.href === "about:blank" || !document.querySelector("script")) return true;
  const start = performance.now();
  let changed = start;
  const observer = new MutationObserver(() => { changed = performance.now(); });
  observer.observe(document, { subtree: true, childList: true, characterData: true });
  const loadsContent = () =>
    document.querySelector("script[type=module]") !== null ||
    performance.getEntriesByType("resource").some(({ initiatorType }) => LOADERS.includes(initiatorType));
  let seen = null; // When the first control was seen.
  try {
    while (performance.now() - start < milliseconds) {
      if (seen === null && [...document.querySelectorAll(CONTROLS)].some(isVisible)) seen = performance.now();
      if (seen !== null) {
        const now = performance.now();
        if (!loadsContent() || now - changed >= QUIET_MS || now - seen >= SETTLE_MS) return true;
      }
      const text = document.body ? document.body.innerText.trim() : "";
      const idle = performance.now() - changed;
      if (document.readyState === "complete" && idle >= QUIET_MS && text) return true;
      await nextFrame();
    }
    return seen !== null;
  } finally {
    observer.disconnect();
  }
}
