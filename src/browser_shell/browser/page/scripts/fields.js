// Functions for fields: what they are, whether they can be operated, their focus and their value. Installed after
// library.js, as `browserShell.fields`; entering.js and choices.js add to it.
(() => {
  const { viewOf, parentOf, isVisible, deepActiveElement } = globalThis.browserShell;
  if (globalThis.browserShell.fields) return;

  // --- What an element is -------------------------------------------------------------------------------------------

  const TEXT_TYPES = ["text", "search", "email", "url", "tel", "password", "number"];
  const VALUE_TYPES = ["date", "time", "month", "week", "datetime-local", "color", "range"];
  const BUTTON_TYPES = ["button", "submit", "reset", "image"];

  // The text area of xterm.js, which passes keys on to a terminal. Keys that move the caret would reach the program there.
  const isTerminal = (element) => Boolean(element.closest(".xterm"));

  const kindOf = (element) => {
    if (element instanceof HTMLInputElement) {
      if (TEXT_TYPES.includes(element.type)) return "text";
      if (VALUE_TYPES.includes(element.type)) return "value";
      return BUTTON_TYPES.includes(element.type) ? "button" : element.type; // checkbox, radio, file, hidden
    }
    if (element instanceof HTMLTextAreaElement) return isTerminal(element) ? "terminal" : "text";
    if (element instanceof HTMLSelectElement) return "select";
    if (element instanceof HTMLButtonElement) return "button";
    if (element instanceof HTMLIFrameElement || element instanceof HTMLFrameElement) return "frame";
    return viewOf(element).isContentEditable || viewOf(element).editContext ? "editable" : "other";
  };

  const roleOf = (element) => (element.getAttribute("role") || "").trim().split(/\s+/)[0].toLowerCase();

  const isTextField = (element) => ["text", "value", "editable"].includes(kindOf(element));

  // All elements below a root that satisfy a test, also inside open shadow roots.
  const search = (root, test, found = []) => {
    for (const element of viewOf(root).querySelectorAll("*")) {
      if (test(element)) found.push(element);
      if (element.shadowRoot) search(element.shadowRoot, test, found);
    }
    return found;
  };

  // The element that a command means: the control of a label, or the only control inside a custom element.
  const controlOf = (element, test) => {
    if (test(element)) return element;
    const label = element instanceof HTMLLabelElement ? element : null;
    if (label?.control && test(label.control)) return label.control;
    const root = element.shadowRoot || (label && !label.control ? label : null);
    const inside = root ? search(root, (node) => test(node) && isVisible(node)) : [];
    return inside.length === 1 ? inside[0] : element;
  };

  const parentElementOf = (element) => viewOf(element).parentElement;

  // The outermost editable ancestor. It has the focus while any part of it is edited.
  const editingHost = (element) => {
    if (!viewOf(element).isContentEditable) return null;
    let host = element;
    while (viewOf(parentElementOf(host))?.isContentEditable) host = parentElementOf(host);
    return host;
  };

  // Whether the value must not be repeated in answers: passwords and one-time codes. A field stays secret when the page
  // turns it into a text field.
  const secrets = new WeakSet();
  const isSecret = (element) => {
    if (looksSecret(element)) secrets.add(element);
    return secrets.has(element);
  };

  const looksSecret = (element) => {
    if (element.type === "password") return true;
    if (/\b(current-password|new-password|one-time-code)\b/.test(element.autocomplete || "")) return true;
    return element instanceof HTMLInputElement && !["", "none"].includes(getComputedStyle(element).webkitTextSecurity);
  };

  // An element that passes its input on to a code editor, which draws the text elsewhere: an almost invisible text area
  // (CodeMirror 5, Ace), or an element with an EditContext (Monaco).
  const isProxy = (element) => {
    if (element.editContext) return true;
    if (!(element instanceof HTMLTextAreaElement) || isTerminal(element)) return false;
    const { width, height } = unclippedBox(element);
    return width <= 4 || height <= 4 || getComputedStyle(element).opacity === "0";
  };

  // The part of an element's box that its ancestors do not cut off.
  const unclippedBox = (element) => {
    let { left, top, right, bottom } = element.getBoundingClientRect();
    for (let node = parentElementOf(element); node && node !== document.body; node = parentElementOf(node)) {
      if (getComputedStyle(node).overflow === "visible") continue;
      const box = viewOf(node).getBoundingClientRect();
      [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
      [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    return { width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
  };

  // The text that the editor of a proxy shows, without line numbers.
  const editorText = (proxy) => {
    let editor = viewOf(proxy.parentElement);
    while (editor?.parentElement) {
      const box = editor.getBoundingClientRect();
      if (box.width >= 60 && box.height >= 14 && editor.innerText.trim()) break;
      editor = viewOf(editor.parentElement);
    }
    const lines = (editor?.innerText || "").replaceAll("\u00a0", " ").split("\n");
    return lines
      .filter((line) => !/^\s*\d+\s*$/.test(line))
      .join("\n")
      .replace(/[\u200b\ufeff]/g, "")
      .trim();
  };

  const ancestor = (element, test) => {
    for (let node = element; node; node = parentOf(node)) if (node instanceof Element && test(viewOf(node))) return node;
    return null;
  };

  const KEY_ROLES = ["", "application", "grid", "gridcell", "listbox", "menu", "textbox", "tree", "treegrid"];

  // Whether the element handles keys itself, for example a grid or a drawing area. It has no value to read back.
  const takesKeys = (element) =>
    kindOf(element) === "terminal" ||
    (kindOf(element) === "other" &&
      element.tabIndex >= 0 &&
      !element.matches("a, summary, label") &&
      KEY_ROLES.includes(roleOf(element)));

  // --- Checks that run before anything is changed -------------------------------------------------------------------

  // Why an element cannot be operated at all; null when it can.
  const obstacle = (element, { hidden = false } = {}) => {
    if (!element.isConnected) return { problem: "gone" };
    if (element.matches(":disabled")) {
      const fieldset = element.disabled ? null : ancestor(element, (node) => node.matches("fieldset:disabled"));
      return { problem: "disabled", by: fieldset ? describeTag(fieldset) : "" };
    }
    const disabled = ancestor(element, (node) => node.getAttribute("aria-disabled") === "true");
    if (disabled) return { problem: "disabled", by: disabled === element ? "" : describeTag(disabled) };
    if (ancestor(element, (node) => node.inert)) return { problem: "inert" };
    const modal = openModal(element);
    if (modal) return { problem: "modal", by: describeTag(modal) };
    return hidden || isVisible(element) ? null : { problem: "invisible" };
  };

  // The modal dialog that makes everything outside it inert.
  const openModal = (element) => {
    const modals = [...document.querySelectorAll("dialog:modal")];
    const top = modals.at(-1);
    return top && !ancestor(element, (node) => node === top || node.matches(":popover-open, dialog:modal"))
      ? top
      : null;
  };

  // Tag, type, and id, name or first class, without text of the page.
  const describeTag = (node) => {
    const element = viewOf(node);
    const name = element.getAttribute("name");
    const style = element.classList[0] ? `.${element.classList[0].slice(0, 40)}` : "";
    const id = element.id ? `#${element.id.slice(0, 40)}` : name ? ` name=${name.slice(0, 40)}` : style;
    const type = element instanceof HTMLInputElement ? ` type=${element.type}` : "";
    return `<${element.localName}${id}${type}>`;
  };

  const ACCEPTED = {
    date: "a date such as 2026-12-24",
    time: "a time such as 09:05 or 18:30",
    month: "a month such as 2026-12",
    week: "a week such as 2026-W50",
    "datetime-local": "a date and time such as 2026-12-24T18:30",
    color: "a colour such as #ff8800",
    number: "a number such as 12.5",
  };

  // What the field accepts, when it does not accept the text; '' when it does. Tried on a copy.
  const notAccepted = (field, text) => {
    if (!(field instanceof HTMLInputElement) || text === "")
      return text === "" && field.type === "range" ? rangeOf(field) : "";
    const type = field.type;
    if (type !== "number" && !VALUE_TYPES.includes(type)) return "";
    const copy = field.cloneNode();
    copy.value = text;
    if (type === "range") return text.trim() !== "" && Number(copy.value) === Number(text) ? "" : rangeOf(field);
    if (type === "color") return copy.value === text.toLowerCase() ? "" : ACCEPTED.color;
    return copy.value === "" ? ACCEPTED[type] : "";
  };

  const rangeOf = (field) => `a number from ${field.min || 0} to ${field.max || 100} in steps of ${field.step || 1}`;

  const refusal = (field, text) => {
    isSecret(field); // Registers a secret field before the page can change its type.
    const kind = kindOf(field);
    if (kind === "frame") return { problem: "frame" };
    if (kind === "hidden") return { problem: "invisible" };
    if (!isTextField(field)) return { problem: "kind", kind, inside: fieldsInside(field) };
    const obstructed = obstacle(field);
    if (obstructed) return obstructed;
    if (field.readOnly || field.getAttribute("aria-readonly") === "true") return { problem: "read-only" };
    if (field instanceof HTMLInputElement && /[\r\n]/.test(text)) return { problem: "one line" };
    const most = field.maxLength ?? -1;
    if (most >= 0 && text.length > most) return { problem: "too long", most, length: text.length };
    const accepted = notAccepted(field, text);
    return accepted ? { problem: "value", accepted, type: field.type } : null;
  };

  const fieldsInside = (element) =>
    search(
      element,
      (node) =>
        (isTextField(node) || kindOf(node) === "frame") && !node.parentElement?.isContentEditable && isVisible(node),
    )
      .slice(0, 3)
      .map(describeTag);

  // --- Focus, and the guard that keeps text out of every other field ------------------------------------------------

  const hasFocus = (element) => {
    let node = editingHost(element) || element;
    if (document.designMode === "on") return document.hasFocus();
    for (;;) {
      const root = node.getRootNode();
      if (root.activeElement !== node) return false;
      if (!(root instanceof ShadowRoot)) return true;
      node = root.host;
    }
  };

  // Give an element the focus. Returns null, or the problem.
  const takeFocus = (element) => {
    const target = editingHost(element) || element;
    const before = deepActiveElement();
    element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    if (document.designMode === "on") window.focus();
    else target.focus();
    if (!element.isConnected) return { problem: "replaced on focus" };
    if (hasFocus(element)) return null;
    return { problem: "focus", on: deepActiveElement() === before ? "" : describeFocus() };
  };

  const describeFocus = () => {
    const active = deepActiveElement();
    return active && active !== document.body ? describeTag(active) : "";
  };

  const GUARDED_EVENTS = ["keydown", "keypress", "beforeinput", "textInput"];
  const GUARD_MS = 3_000; // The guard expires after this time without an event, in case its command was cancelled.
  let guard = null;

  // Discards input that was meant for one field when another element has the focus.
  const onGuardedEvent = (event) => {
    if (!guard || !event.isTrusted || performance.now() > guard.until) return;
    guard.until = performance.now() + GUARD_MS;
    if (guard.field && guard.field.isConnected && hasFocus(guard.field)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    guard.blocked += 1;
    guard.on ||= guard.field && !guard.field.isConnected ? "gone" : describeFocus();
  };
  for (const type of GUARDED_EVENTS) addEventListener(type, onGuardedEvent, true);

  // Let input through to `field` only, or to no element of this document if `field` is null.
  const guardInput = (field) => {
    guard = { field: field || null, until: performance.now() + GUARD_MS, blocked: 0, on: "" };
  };

  // Let all input through again. Returns how many events were discarded, and the element that had the focus.
  const releaseGuard = () => {
    const { blocked = 0, on = "" } = guard || {};
    guard = null;
    return { blocked, on };
  };

  const focus = (element) => {
    const target = controlOf(element, (node) => node.tabIndex >= 0 || isTextField(node));
    if (kindOf(target) === "frame") return { problem: "frame" };
    return obstacle(target) || takeFocus(target) || {};
  };

  // --- Values -------------------------------------------------------------------------------------------------------

  const read = (field) => {
    if (isProxy(field)) return editorText(field);
    if (takesKeys(field)) return "";
    if ("value" in field) return field.value;
    return linesOf(field)
      .join("\n")
      .replace(/[\n\u200b\ufeff]+$/, "")
      .replaceAll("\u00a0", " ");
  };

  // The lines of an editable element: one per block, and one per <br>. `innerText` has empty lines between paragraphs.
  const linesOf = (host) => {
    const lines = [];
    let open = false; // Whether text continues the last line.
    const add = (text) => {
      if (!open) lines.push("");
      open = true;
      lines[lines.length - 1] += text;
    };
    const addText = (node) => {
      const keeps = getComputedStyle(node.parentElement).whiteSpaceCollapse !== "collapse";
      const collapsed = node.data.replace(/[ \t\r\n]+/g, " ");
      const parts = keeps ? node.data.split("\n") : [open ? collapsed : collapsed.replace(/^ /, "")];
      parts.forEach((part, index) => {
        if (index) open = false;
        if (part || keeps) add(part);
      });
    };
    const walk = (parent) => {
      for (const node of parent.childNodes) {
        if (node instanceof Text) addText(node);
        if (!(node instanceof Element) || getComputedStyle(node).display === "none") continue;
        const isBlock = !/^(inline|contents)/.test(getComputedStyle(node).display);
        if (node instanceof HTMLBRElement) {
          add("");
          open = false;
          continue;
        }
        if (isBlock) open = false;
        walk(node);
        if (isBlock) open = false;
      }
    };
    walk(host);
    return lines.map((line) => line.replace(/ $/, ""));
  };

  const selectionOf = (element) => {
    const root = element.getRootNode();
    return root.getSelection ? root.getSelection() : document.getSelection();
  };

  // The field that took the place of one that the page removed while text was entered.
  const successorOf = (field) => {
    const active = deepActiveElement();
    const named = field.id
      ? document.getElementById(field.id)
      : field.getAttribute("name") && document.getElementsByName(field.getAttribute("name"))[0];
    return [named, active].find((node) => node && kindOf(node) === kindOf(field) && node.type === field.type) || null;
  };

  // Pages may react to an event in a task of their own.
  const nextTask = () => new Promise((resolve) => setTimeout(resolve));

  globalThis.browserShell.fields = {
    kindOf,
    roleOf,
    isTextField,
    search,
    controlOf,
    editingHost,
    isSecret,
    isProxy,
    unclippedBox,
    takesKeys,
    ancestor,
    obstacle,
    describeTag,
    refusal,
    hasFocus,
    takeFocus,
    describeFocus,
    guardInput,
    releaseGuard,
    focus,
    read,
    selectionOf,
    successorOf,
    nextTask,
  };
})()
