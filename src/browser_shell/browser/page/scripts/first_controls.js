// Wait until the page shows a control, or until a page without controls has been quiet for a while.
// Returns whether one of both happened in time.
async function (milliseconds) {
  const { isVisible, nextFrame } = browserShell;
  const CONTROLS =
    "a[href], button, input:not([type=hidden]), select, textarea, summary, canvas, video, audio, iframe, object, embed, " +
    "[role=button], [role=link], [role=tab], [role=menuitem], [role=textbox], [tabindex], [contenteditable]";
  const QUIET_MS = 300;
  if (location.href === "about:blank" || !document.querySelector("script")) return true;
  const start = performance.now();
  let changed = start;
  const observer = new MutationObserver(() => { changed = performance.now(); });
  observer.observe(document, { subtree: true, childList: true, characterData: true });
  try {
    while (performance.now() - start < milliseconds) {
      if ([...document.querySelectorAll(CONTROLS)].some(isVisible)) return true;
      const text = document.body ? document.body.innerText.trim() : "";
      const idle = performance.now() - changed;
      if (document.readyState === "complete" && idle >= QUIET_MS && text) return true;
      await nextFrame();
    }
    return false;
  } finally {
    observer.disconnect();
  }
}
