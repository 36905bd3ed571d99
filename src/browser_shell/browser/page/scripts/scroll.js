// Scroll the nearest scrollable ancestor of `this`, or the main scroller of the document when `this` is the window.
// Returns {moved, position, max, of}, or null when nothing here can be scrolled in this direction. Without
// `allowsWindow`, the result for an element whose only scrollable ancestor is the window is {byScript, of}: a script of the
// page may scroll it.
function (right, down, allowsWindow) {
  const { parentOf } = browserShell;
  const { describeTag, search } = browserShell.fields;
  const horizontal = right !== 0;
  const root = document.scrollingElement || document.documentElement;

  const overflowOf = (element) => getComputedStyle(element)[horizontal ? "overflowX" : "overflowY"];
  const roomOf = (element) =>
    horizontal ? element.scrollWidth - element.clientWidth : element.scrollHeight - element.clientHeight;
  const allows = (value) => ["auto", "scroll", "overlay"].includes(value);

  // The overflow of <html>, or else of <body>, applies to the window (CSS Overflow 3 §3.3).
  const html = document.documentElement,
    body = document.body;
  const fromBody = body && overflowOf(html) === "visible" && getComputedStyle(html).overflow === "visible";
  const windowScrolls = () => {
    const value = fromBody ? overflowOf(body) : overflowOf(html);
    return roomOf(root) > 0 && !["hidden", "clip"].includes(value);
  };
  const scrolls = (element) => {
    if (element === root || element === html) return windowScrolls();
    if (element === body && fromBody) return false;
    return roomOf(element) > 0 && allows(overflowOf(element));
  };

  const nearest = (element) => {
    for (let node = element; node; node = parentOf(node)) if (node instanceof Element && scrolls(node)) return node;
    return null;
  };

  const visibleArea = (element) => {
    const box = element.getBoundingClientRect();
    const width = Math.min(box.right, innerWidth) - Math.max(box.left, 0);
    const height = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
    return width > 0 && height > 0 && element.checkVisibility({ visibilityProperty: true }) ? width * height : 0;
  };

  const largest = () =>
    search(document, scrolls)
      .map((element) => [visibleArea(element), element])
      .filter(([area]) => area > 0)
      .sort(([one], [two]) => two - one)[0]?.[1] || null;

  const scroller = this instanceof Element ? nearest(this) : windowScrolls() ? root : largest();
  if (this instanceof Element && !allowsWindow && (!scroller || scroller === root || scroller === html)) {
    return { byScript: true, of: describeTag(this) };
  }
  if (!scroller) return null;
  const box = scroller === html ? root : scroller;
  const before = horizontal ? box.scrollLeft : box.scrollTop;
  box.scrollBy({ left: right, top: down, behavior: "instant" });
  const position = horizontal ? box.scrollLeft : box.scrollTop;
  return {
    moved: Math.round(Math.abs(position - before)),
    position: Math.round(position),
    max: Math.max(0, Math.round(roomOf(box))),
    of: box === root ? "page" : describeTag(box),
  };
}
