// Find elements by CSS, XPath or text in one document, open shadow roots included. Visible elements come first.
// mode: "first" returns an element or null, "count" a number, "equal matches" the number of visible elements that match as well
// as the first: those with exactly the wanted text, else all.
function (kind, wanted, mode) {
  const { isVisible } = browserShell;
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD"]);

  const shadowRoots = (root) =>
    [...root.querySelectorAll("*")]
      .filter((element) => element.shadowRoot)
      .flatMap((host) => [host.shadowRoot, ...shadowRoots(host.shadowRoot)]);

  const byCss = () => {
    const found = [...document.querySelectorAll(wanted)];
    return found.length ? found : shadowRoots(document).flatMap((root) => [...root.querySelectorAll(wanted)]);
  };

  const byXPath = () => {
    const nodes = document.evaluate(wanted, document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
    const all = Array.from({ length: nodes.snapshotLength }, (_, index) => nodes.snapshotItem(index));
    return all.filter((node) => node.nodeType === Node.ELEMENT_NODE);
  };

  const normal = (text) => (text || "").replace(/\s+/g, " ").trim();

  // The innermost elements whose text contains the wanted one.
  const innermost = (element, matches) => {
    if (SKIPPED.has(element.nodeName) || !matches(normal(element.textContent))) return [];
    const inner = [...element.children].flatMap((child) => innermost(child, matches));
    return inner.length ? inner : [element];
  };

  const NAMED = "[aria-label], [alt], [title], [placeholder], input[type=submit], input[type=button], input[type=reset]";
  const names = (element) =>
    ["aria-label", "alt", "title", "placeholder"].map((name) => normal(element.getAttribute(name)))
      .concat(/^(submit|button|reset)$/.test(element.type) ? normal(element.value) : []);

  const byText = () => {
    const roots = [document, ...shadowRoots(document)];
    const named = roots.flatMap((root) => [...root.querySelectorAll(NAMED)]);
    const tops = roots.flatMap((root) => (root === document ? [document.body] : [...root.children])).filter(Boolean);
    for (const fold of [(text) => text, (text) => text.toLowerCase()]) {
      const text = fold(normal(wanted));
      const inText = tops.flatMap((top) => innermost(top, (content) => fold(content).includes(text)));
      const inName = named.filter((element) => names(element).some((name) => name && fold(name).includes(text)));
      const exact = (element) =>
        fold(normal(element.textContent)) === text || names(element).some((name) => fold(name) === text);
      const found = [...new Set([...inText, ...inName])];
      const best = found.filter(exact);
      if (mode === "equal matches" && best.some(isVisible)) return best;
      if (found.length) return [...best, ...found.filter((element) => !exact(element))];
    }
    return [];
  };

  const found = { css: byCss, xpath: byXPath, text: byText }[kind]();
  if (mode === "count") return found.length;
  if (mode === "equal matches") return found.filter(isVisible).length;
  return found.find(isVisible) || found[0] || null;
}
