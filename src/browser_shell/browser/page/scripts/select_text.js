// Select the text of an element, or a passage in it. Returns {text} as the page has it selected, or {problem}.
async function (passage) {
  const { describe } = browserShell;
  const { selectionOf, editingHost } = browserShell.fields;

  const words = (text) => text.replace(/\s+/g, " ").trim();

  // Editors handle `selectionchange` and use the selection in a later task. An unchanged selection fires no event.
  const noticed = new Promise((resolve) => {
    document.addEventListener("selectionchange", () => setTimeout(resolve, 20), { once: true, capture: true });
    setTimeout(resolve, 100);
  });

  const selectInField = (field) => {
    if (field.type === "password") return { problem: "secret" };
    if (field.value === "") return { problem: "empty" };
    const start = passage === null ? 0 : field.value.indexOf(passage);
    if (start < 0) return { problem: "missing", text: field.value.slice(0, 200) };
    field.focus();
    const end = passage === null ? field.value.length : start + passage.length;
    if (field.selectionStart === null) {
      // Fields such as number and email can only be selected as a whole.
      if (end - start !== field.value.length) return { problem: "whole" };
      field.select();
      return { text: field.value };
    }
    field.setSelectionRange(start, end);
    return { text: field.value.slice(field.selectionStart, field.selectionEnd) };
  };

  // The characters of all visible text nodes, white space collapsed as in the rendered text.
  const charactersOf = (root) => {
    const found = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    let block = null;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (!parent || !parent.checkVisibility({ visibilityProperty: true }) || parent.closest("script, style")) continue;
      let container = parent;
      while (container !== root && getComputedStyle(container).display.startsWith("inline"))
        container = container.parentElement;
      if (block && container !== block && found.at(-1)?.character !== " ")
        found.push({ character: " ", node, offset: 0 });
      block = container;
      for (let offset = 0; offset < node.data.length; offset++) {
        const character = /\s/.test(node.data[offset]) ? " " : node.data[offset];
        if (character !== " " || found.at(-1)?.character !== " ") found.push({ character, node, offset });
      }
    }
    return found;
  };

  const rangeOf = (root) => {
    const range = document.createRange();
    if (passage === null) {
      range.selectNodeContents(root);
      return range;
    }
    const characters = charactersOf(root);
    const wanted = words(passage);
    const start = characters
      .map((entry) => entry.character)
      .join("")
      .indexOf(wanted);
    if (start < 0 || !wanted) return null;
    const first = characters[start],
      last = characters[start + wanted.length - 1];
    range.setStart(first.node, first.offset);
    range.setEnd(last.node, last.offset + 1);
    return range;
  };

  if (!browserShell.isVisible(this)) return { problem: "invisible" };
  this.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  if (this instanceof HTMLInputElement || this instanceof HTMLTextAreaElement) {
    const result = selectInField(this);
    if (!result.problem) await noticed;
    return result;
  }
  const range = rangeOf(this);
  if (!range) return { problem: "missing", text: words(this.innerText || "").slice(0, 200) };
  editingHost(this)?.focus({ preventScroll: true });
  const selection = selectionOf(this);
  selection.removeAllRanges();
  selection.addRange(range);
  range.startContainer.parentElement?.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  await noticed;
  const text = selection.toString();
  return text ? { text } : { problem: "empty", on: describe(this) };
}
