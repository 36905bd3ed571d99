// Functions for fields: fill, type, check, select and focus. Installed after library.js, as `browserShell.fields`.
(() => {
  const { parentOf, isVisible, describe, deepActiveElement, until } = globalThis.browserShell;
  if (globalThis.browserShell.fields) return;

  // --- What an element is -------------------------------------------------------------------------------------------

  const TEXT_TYPES = ["text", "search", "email", "url", "tel", "password", "number"];
  const VALUE_TYPES = ["date", "time", "month", "week", "datetime-local", "color", "range"];
  const BUTTON_TYPES = ["button", "submit", "reset", "image"];

  const kindOf = (element) => {
    if (element instanceof HTMLInputElement) {
      if (TEXT_TYPES.includes(element.type)) return "text";
      if (VALUE_TYPES.includes(element.type)) return "value";
      return BUTTON_TYPES.includes(element.type) ? "button" : element.type; // checkbox, radio, file, hidden
    }
    if (element instanceof HTMLTextAreaElement) return "text";
    if (element instanceof HTMLSelectElement) return "select";
    if (element instanceof HTMLButtonElement) return "button";
    if (element instanceof HTMLIFrameElement || element instanceof HTMLFrameElement) return "frame";
    return element.isContentEditable || element.editContext ? "editable" : "other";
  };

  const roleOf = (element) => (element.getAttribute("role") || "").trim().split(/\s+/)[0].toLowerCase();

  const isTextField = (element) => ["text", "value", "editable"].includes(kindOf(element));

  // All elements below a root that satisfy a test, also inside open shadow roots.
  const search = (root, test, found = []) => {
    for (const element of root.querySelectorAll("*")) {
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

  // The outermost editable ancestor. It has the focus while any part of it is edited.
  const editingHost = (element) => {
    if (!element.isContentEditable) return null;
    let host = element;
    while (host.parentElement?.isContentEditable) host = host.parentElement;
    return host;
  };

  // Whether the value must not be repeated in answers: passwords and one-time codes.
  const isSecret = (element) => {
    if (element.type === "password") return true;
    if (/\b(current-password|new-password|one-time-code)\b/.test(element.autocomplete || "")) return true;
    return element instanceof HTMLInputElement && !["", "none"].includes(getComputedStyle(element).webkitTextSecurity);
  };

  // An element that passes its input on to a code editor, which draws the text elsewhere: an almost invisible text area
  // (CodeMirror 5, Ace), or an element with an EditContext (Monaco).
  const isProxy = (element) => {
    if (element.editContext) return true;
    if (!(element instanceof HTMLTextAreaElement)) return false;
    const { width, height } = unclippedBox(element);
    return width <= 4 || height <= 4 || getComputedStyle(element).opacity === "0";
  };

  // The part of an element's box that its ancestors do not cut off.
  const unclippedBox = (element) => {
    let { left, top, right, bottom } = element.getBoundingClientRect();
    for (let node = element.parentElement; node && node !== document.body; node = node.parentElement) {
      if (getComputedStyle(node).overflow === "visible") continue;
      const box = node.getBoundingClientRect();
      [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
      [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    return { width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
  };

  // The text that the editor of a proxy shows, without line numbers.
  const editorText = (proxy) => {
    let editor = proxy.parentElement;
    while (editor?.parentElement) {
      const box = editor.getBoundingClientRect();
      if (box.width >= 60 && box.height >= 14 && editor.innerText.trim()) break;
      editor = editor.parentElement;
    }
    const lines = (editor?.innerText || "").replaceAll("\u00a0", " ").split("\n");
    return lines.filter((line) => !/^\s*\d+\s*$/.test(line)).join("\n").replace(/[\u200b\ufeff]/g, "").trim();
  };

  const ancestor = (element, test) => {
    for (let node = element; node; node = parentOf(node)) if (node instanceof Element && test(node)) return node;
    return null;
  };

  // --- Refusals: nothing is touched before these pass ---------------------------------------------------------------

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
    return top && !ancestor(element, (node) => node === top || node.matches(":popover-open, dialog:modal")) ? top : null;
  };

  // Tag, type, and id, name or first class, without text of the page.
  const describeTag = (element) => {
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
    if (!(field instanceof HTMLInputElement) || text === "") return text === "" && field.type === "range" ? rangeOf(field) : "";
    const type = field.type;
    if (type !== "number" && !VALUE_TYPES.includes(type)) return "";
    const copy = field.cloneNode();
    copy.value = text;
    if (type === "range") return text.trim() !== "" && Number(copy.value) === Number(text) ? "" : rangeOf(field);
    if (type === "color") return copy.value === text.toLowerCase() ? "" : ACCEPTED.color;
    return copy.value === "" ? ACCEPTED[type] : "";
  };

  const rangeOf = (field) =>
    `a number from ${field.min || 0} to ${field.max || 100} in steps of ${field.step || 1}`;

  const refusal = (field, text) => {
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
    search(element, (node) => (isTextField(node) || kindOf(node) === "frame") && !node.parentElement?.isContentEditable && isVisible(node))
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
  const GUARD_MS = 3_000; // Without an event; ends the guard of a command that was cancelled.
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

  // Let input through to this field only; to no field of this document without one.
  const guardInput = (field) => {
    guard = { field: field || null, until: performance.now() + GUARD_MS, blocked: 0, on: "" };
  };

  // Let all input through again. Returns how many events were discarded, and the element that had the focus.
  const releaseGuard = () => {
    const { blocked = 0, on = "" } = guard || {};
    guard = null;
    return { blocked, on };
  };

  // --- Values -------------------------------------------------------------------------------------------------------

  const read = (field) => {
    if (isProxy(field)) return editorText(field);
    if (takesKeys(field)) return "";
    if ("value" in field) return field.value;
    return linesOf(field).join("\n").replace(/[\n\u200b\ufeff]+$/, "").replaceAll("\u00a0", " ");
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

  const lineEnds = (text) => text.replace(/\r\n?/g, "\n");
  const squeeze = (text) => text.replace(/[\s\u200b\ufeff]+/g, "");

  // Whether the field holds the text. Editors lay out lines and spaces in their own way.
  const holds = (field, text) => {
    const value = read(field);
    if (isProxy(field)) return holdsLines(squeeze(value), text.split("\n"), current?.old.split("\n") || []);
    return "value" in field ? value === lineEnds(text) : squeeze(value) === squeeze(text);
  };

  // Whether a text contains all these lines, and no line that should have been replaced.
  const holdsLines = (value, lines, old) => {
    const wanted = lines.map(squeeze);
    const gone = old.map(squeeze).filter((line) => line && !wanted.some((other) => other.includes(line)));
    if (!wanted.join("")) return value === "";
    return wanted.every((line) => value.includes(line)) && !gone.some((line) => value.includes(line));
  };

  // Whether the lines of a text have the same white space at their start. Editors may indent lines by themselves.
  const hasIndentation = (value, text) => {
    const lines = (whole) => lineEnds(whole).split("\n").map((line) => line.trimEnd()).filter(Boolean);
    const shown = lines(value);
    return lines(text).every((line) => shown.includes(line));
  };

  // Paste text into an editor that handles the event by itself. Returns whether it did.
  const paste = (text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true, composed: true });
    if (!hasFocus(current.field)) return false;
    current.field.dispatchEvent(event);
    return event.defaultPrevented;
  };

  // The field that took the place of one that the page removed while text was entered.
  const successorOf = (field) => {
    const active = deepActiveElement();
    const named = field.id
      ? document.getElementById(field.id)
      : field.getAttribute("name") && document.getElementsByName(field.getAttribute("name"))[0];
    return [named, active].find((node) => node && kindOf(node) === kindOf(field) && node.type === field.type) || null;
  };

  const UPDATE_MS = 200; // Time for a page to show text that it received.
  let current = null; // The field of the command that runs, and the text in it that is to be replaced.

  const outcome = (field, more) => ({
    field: describeTag(field),
    value: read(field),
    secret: isSecret(field),
    kind: isProxy(field) ? "proxy" : kindOf(field),
    sink: isSink(field),
    invalid: field.value && field.validity && !field.validity.valid ? field.validationMessage : "",
    ...more,
  });

  // Pages may react to an event in a task of their own.
  const nextTask = () => new Promise((resolve) => setTimeout(resolve));

  // Values of these types are set as a whole; typing them depends on the language of the browser.
  const setValue = async (field, text) => {
    const problem = takeFocus(field);
    if (problem && problem.problem !== "focus") return problem;
    if (field.matches(":disabled") || field.readOnly) return { problem: "changed on focus" };
    // This world has the setter of the browser. Frameworks replace it in the page's world to notice changes.
    field.value = text;
    const value = field.value; // In the form of the browser: seconds of zero are left out, for example.
    field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
    await nextTask();
    const present = field.isConnected ? field : successorOf(field) || field;
    return outcome(present, { done: true, connected: field.isConnected, holds: present.value === value });
  };

  const selectAll = (field) => {
    if ("select" in field) return field.select();
    const range = document.createRange();
    range.selectNodeContents(field);
    const selection = selectionOf(field);
    selection.removeAllRanges();
    selection.addRange(range);
  };

  const selectionOf = (element) => {
    const root = element.getRootNode();
    return root.getSelection ? root.getSelection() : document.getSelection();
  };

  const caretToEnd = (field) => {
    if (kindOf(field) === "editable" && field !== editingHost(field)) {
      const selection = selectionOf(field);
      selection.selectAllChildren(field);
      selection.collapseToEnd();
    } else if (kindOf(field) !== "value" && !isProxy(field)) {
      document.getSelection().modify("move", "forward", "documentboundary");
    }
  };

  // Check a field, give it the focus and select its content. The text of an <input> is replaced at once; in other fields
  // the text that is inserted next replaces it.
  const beginFill = async (element, text) => {
    const field = controlOf(element, isTextField);
    const refused = refusal(field, text);
    if (refused) return refused;
    if (kindOf(field) === "value") return setValue(field, text);
    const old = read(field);
    current = { field, old };
    const problem = takeFocus(field);
    if (problem) return problem;
    if (field.readOnly || field.matches(":disabled")) return { problem: "changed on focus" };
    if (!isProxy(field)) selectAll(field);
    const other = field !== element;
    if (field instanceof HTMLInputElement) {
      const moved = replaceText(field, text);
      return moved || { ...(await finish(text)), done: true, other };
    }
    guardInput(field);
    return outcome(field, {
      old,
      other,
      // Editors with their own model, which may show only a part of the text, select all of it on Control+a.
      byKey: isProxy(field) || field === editingHost(field),
      pastes: isProxy(field) && text.includes("\n"),
      empty: old === "" && !isProxy(field),
    });
  };

  // Replace the selected text in the same task in which the focus is checked. Nothing can move the focus in between, so
  // that a password cannot reach another field. The command raises the trusted events of an editing user.
  const replaceText = (field, text) => {
    if (text === "" && field.value === "" && !field.validity.badInput) return null;
    const inputType = text ? "insertText" : "deleteContentBackward";
    const before = new InputEvent("beforeinput", { inputType, data: text || null, bubbles: true, cancelable: true, composed: true });
    if (!field.dispatchEvent(before)) return null; // The page enters the text by itself.
    if (!field.isConnected) return { problem: "replaced on focus" };
    if (!hasFocus(field)) return { problem: "focus", on: describeFocus() };
    document.execCommand(text ? "insertText" : "delete", false, text);
    return null;
  };

  const KEY_ROLES = ["", "application", "grid", "gridcell", "listbox", "menu", "textbox", "tree", "treegrid"];

  // An element with keys of its own, for example a grid or a drawing area. It has no value to read back.
  const takesKeys = (element) =>
    kindOf(element) === "other" && element.tabIndex >= 0 && !element.matches("a, summary, label") &&
    KEY_ROLES.includes(roleOf(element));

  // A field that pages show nothing of: it receives keys for another part of the page, for example a terminal.
  const isSink = (field) => {
    if (isProxy(field) || takesKeys(field)) return true;
    const { width, height } = unclippedBox(field);
    return field instanceof HTMLInputElement && !isSecret(field) && (width <= 4 || height <= 4);
  };

  const beginType = (element, text) => {
    const field = controlOf(element, isTextField);
    const refused = takesKeys(field)
      ? obstacle(field)
      : typingProblem(field, text) || refusal(field, kindOf(field) === "value" ? "" : text);
    if (refused) return refused;
    const old = read(field);
    current = { field, old: "" };
    const problem = takeFocus(field);
    if (problem) return problem;
    if (field.readOnly || field.matches(":disabled")) return { problem: "changed on focus" };
    caretToEnd(field);
    guardInput(field);
    return outcome(field, { old, byKey: isProxy(field), other: field !== element });
  };

  const typingProblem = (field, text) => {
    if (["range", "color"].includes(field.type)) return { problem: "typing", type: field.type };
    const most = field.maxLength ?? -1;
    const length = (field.value?.length || 0) + text.length;
    return most >= 0 && length > most ? { problem: "too long", most, length } : null;
  };

  // Read the field after input. Waits a short time for a page that updates it later.
  const finish = async (expected) => {
    const released = releaseGuard();
    let { field } = current;
    await nextTask();
    const waits = field.isConnected && !released.blocked && kindOf(field) !== "value";
    if (waits) await until(() => !field.isConnected || holds(field, expected), UPDATE_MS);
    const connected = field.isConnected;
    if (!connected) field = successorOf(field);
    if (!field) return { connected, ...released };
    return outcome(field, { connected, focused: hasFocus(field), focus: describeFocus(), holds: holds(field, expected), indented: isProxy(field) && !hasIndentation(read(field), expected), ...released });
  };

  const focus = (element) => {
    const target = controlOf(element, (node) => node.tabIndex >= 0 || isTextField(node));
    if (kindOf(target) === "frame") return { problem: "frame" };
    return obstacle(target) || takeFocus(target) || {};
  };

  // What a frame of a rich editor contains: its editable body, or the only editable element; null for another frame.
  const editableContent = () => {
    if (document.body?.isContentEditable) return document.body;
    const hosts = search(document, (node) => node.isContentEditable && node === editingHost(node) && isVisible(node));
    return hosts.length === 1 ? hosts[0] : null;
  };

  // --- Check boxes --------------------------------------------------------------------------------------------------

  const CHECKABLE_ROLES = ["checkbox", "switch", "radio", "menuitemcheckbox", "menuitemradio"];

  const isCheckable = (element) =>
    ["checkbox", "radio"].includes(kindOf(element)) || CHECKABLE_ROLES.includes(roleOf(element));

  // The check box, radio button or switch that an element is, labels, contains or belongs to; null if there is none.
  const checkable = (element) => {
    const found = controlOf(element, isCheckable);
    if (isCheckable(found)) return found;
    const label = element.closest("label");
    if (label?.control && isCheckable(label.control)) return label.control;
    const around = element.closest(CHECKABLE_ROLES.map((role) => `[role=${role}]`).join());
    if (around) return around;
    const inside = search(element, isCheckable);
    return inside.length === 1 ? inside[0] : null;
  };

  // true, false or 'mixed'.
  const checkedState = (element) => {
    if (element instanceof HTMLInputElement) return element.indeterminate ? "mixed" : element.checked;
    const state = element.getAttribute("aria-checked");
    return state === "mixed" ? "mixed" : state === "true";
  };

  // A check box that a page hides, so that the mouse cannot hit it, in order to draw its own.
  const isConcealed = (element) => {
    const box = element.getBoundingClientRect();
    return box.width <= 4 || box.height <= 4 || !isVisible(element);
  };

  const beginCheck = (element) =>
    obstacle(element, { hidden: true }) || {
      state: checkedState(element),
      radio: element.type === "radio" || ["radio", "menuitemradio"].includes(roleOf(element)),
      concealed: isConcealed(element),
      transparent: getComputedStyle(element).opacity === "0",
    };

  const INTERACTIVE = "a[href], button, input, select, textarea, [role=button], [role=link]";
  const STEPS = [0.5, 0.2, 0.8, 0.05, 0.95];

  const visibleLabels = (element) => [...(element.labels || [])].filter(isVisible);

  // A label of a check box that a person can click; null if there is none.
  const labelOf = (element, index) => visibleLabels(element)[index] || null;

  // Where a label can be clicked without hitting a link or button in it: [right, down] from its top left corner.
  const safePoint = (label) => {
    label.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    const start = label.getBoundingClientRect();
    const root = label.getRootNode();
    const parts = [...label.children].filter((part) => !part.matches(INTERACTIVE));
    for (const box of [label, ...parts].flatMap((part) => [...part.getClientRects()])) {
      for (const down of STEPS) {
        for (const right of STEPS) {
          const x = box.left + box.width * right, y = box.top + box.height * down;
          const hit = root.elementFromPoint(x, y);
          const inside = hit && ancestor(hit, (node) => node === label);
          const other = hit && ancestor(hit, (node) => node === label || node.matches(INTERACTIVE)) !== label;
          const point = [Math.floor(x - start.left), Math.floor(y - start.top)];
          if (inside && !other && point.every((part) => part >= 0)) return point;
        }
      }
    }
    return null;
  };

  const awaitChecked = async (element, wanted) => {
    await until(() => !element.isConnected || checkedState(element) === wanted, 500);
    return { connected: element.isConnected, state: checkedState(element) };
  };

  // --- Select -------------------------------------------------------------------------------------------------------

  const words = (text) => (text || "").replace(/\s+/g, " ").trim();
  const MAX_OPTIONS = 20;

  const select = async (element, values) => {
    const field = controlOf(element, (node) => node instanceof HTMLSelectElement);
    if (!(field instanceof HTMLSelectElement)) return { problem: "not a select", kind: comboKind(field) };
    const obstructed = obstacle(field);
    if (obstructed) return obstructed;
    const options = [...field.options];
    const find = (value) =>
      options.find((option) => option.value === value) || options.find((option) => words(option.label) === words(value));
    const wanted = values.map(find);
    const shown = options.slice(0, MAX_OPTIONS).map((option) => {
      const label = words(option.label).slice(0, 60);
      return option.value === label || !label ? option.value.slice(0, 60) : `${label} (${option.value.slice(0, 60)})`;
    });
    const missing = values.filter((_, index) => !wanted[index]);
    if (missing.length) return { problem: "options", missing, shown, count: options.length };
    const off = wanted.find((option) => option.disabled || option.parentElement.disabled);
    if (off) return { problem: "option disabled", value: off.value, label: words(off.label) };
    if (!field.multiple && new Set(wanted).size > 1) return { problem: "single" };
    const problem = takeFocus(field);
    if (problem && problem.problem !== "focus") return problem;
    const changed = options.some((option) => option.selected !== wanted.includes(option));
    if (changed) {
      if (field.multiple) for (const option of options) option.selected = wanted.includes(option);
      else wanted[0].selected = true;
      field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
      field.dispatchEvent(new Event("change", { bubbles: true }));
      await nextTask();
    }
    return chosen(field, wanted);
  };

  const chosen = (field, wanted) => {
    const present = field.isConnected ? field : successorOf(field) || field;
    const selected = [...present.selectedOptions];
    const values = (options) => options.map((option) => option.value).sort().join("\n");
    return {
      selected: selected.map((option) => option.value),
      labels: selected.map((option) => words(option.label)),
      holds: values(selected) === values([...new Set(wanted)]),
      connected: field.isConnected,
    };
  };

  const comboKind = (element) => {
    if (element.hasAttribute("aria-haspopup") || ["combobox", "listbox", "button"].includes(roleOf(element))) return "combobox";
    return isCheckable(element) ? "checkable" : isTextField(element) ? "text" : "other";
  };

  // --- Reading ------------------------------------------------------------------------------------------------------

  const valueOf = (element) => {
    const field = controlOf(element, (node) => isTextField(node) || node instanceof HTMLSelectElement);
    const kind = kindOf(field);
    if (isSecret(field) || kind === "hidden") return { problem: "secret" };
    if (field instanceof HTMLSelectElement && field.multiple) {
      return { value: [...field.selectedOptions].map((option) => option.value) };
    }
    if (kind === "editable") return { value: read(field) };
    return "value" in field && kind !== "frame" && kind !== "other" ? { value: field.value } : { problem: "no value" };
  };

  // Whether a person can see the element, if they scroll to it.
  const isShown = (element) => {
    if (getComputedStyle(element).display === "contents") return [...element.children].some(isShown) || hasText(element);
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    return [...element.getClientRects()].some((box) => box.width > 0 && box.height > 0);
  };

  const hasText = (element) => [...element.childNodes].some((node) => node instanceof Text && node.data.trim());

  const isEnabled = (element) => {
    const target = controlOf(element, (node) => node.matches("input, textarea, select, button"));
    return !["disabled", "inert"].includes(obstacle(target, { hidden: true })?.problem);
  };

  const isChecked = (element) => {
    if (element instanceof HTMLOptionElement) return element.selected;
    const target = checkable(element);
    if (target) return checkedState(target) === true;
    for (const name of ["aria-checked", "aria-selected", "aria-pressed"]) {
      if (element.hasAttribute(name)) return element.getAttribute(name) === "true";
    }
    return null;
  };

  globalThis.browserShell.fields = {
    beginFill, beginType, paste, finish, guardInput, releaseGuard, editableContent, focus, checkable, beginCheck, labelOf, safePoint, awaitChecked, select,
    valueOf, isShown, isEnabled, isChecked, hasFocus, describeTag, selectionOf, editingHost, kindOf, search, ancestor,
  };
})()
