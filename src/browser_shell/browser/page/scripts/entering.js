// Functions that enter text: fill and type. Installed after fields.js, in `browserShell.fields`.
(() => {
  const { isVisible, until, fields } = globalThis.browserShell;
  if (fields.beginFill) return;
  const {
    kindOf,
    isTextField,
    search,
    controlOf,
    editingHost,
    isSecret,
    isProxy,
    unclippedBox,
    takesKeys,
    obstacle,
    describeTag,
    refusal,
    hasFocus,
    takeFocus,
    describeFocus,
    guardInput,
    releaseGuard,
    read,
    selectionOf,
    successorOf,
    nextTask,
  } = fields;

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
    const lines = (whole) =>
      lineEnds(whole)
        .split("\n")
        .map((line) => line.trimEnd())
        .filter(Boolean);
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

  // Values of these types are set as a whole; typing them depends on the language of the browser.
  const setValue = async (field, text) => {
    const problem = takeFocus(field);
    if (problem && problem.problem !== "focus") return problem;
    if (field.matches(":disabled") || field.readOnly) return { problem: "changed on focus" };
    // This world has the setter of the browser. Frameworks replace it in the page's world to detect changes.
    field.value = text;
    const value = field.value; // Normalised by the browser, for example without zero seconds.
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

  const caretToEnd = (field) => {
    if (kindOf(field) === "editable" && field !== editingHost(field)) {
      const selection = selectionOf(field);
      selection.selectAllChildren(field);
      selection.collapseToEnd();
    } else if (["text", "editable"].includes(kindOf(field)) && !isProxy(field)) {
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
  // that a password cannot reach another field. `execCommand` fires trusted input events.
  const replaceText = (field, text) => {
    if (text === "" && field.value === "" && !field.validity.badInput) return null;
    const inputType = text ? "insertText" : "deleteContentBackward";
    const before = new InputEvent("beforeinput", {
      inputType,
      data: text || null,
      bubbles: true,
      cancelable: true,
      composed: true,
    });
    if (!field.dispatchEvent(before)) return null; // The page enters the text by itself.
    if (!field.isConnected) return { problem: "replaced on focus" };
    if (!hasFocus(field)) return { problem: "focus", on: describeFocus() };
    document.execCommand(text ? "insertText" : "delete", false, text);
    return null;
  };

  // Whether the field receives keys for another part of the page, for example a terminal, and is itself not visible.
  const isSink = (field) => {
    if (isProxy(field) || takesKeys(field)) return true;
    if (!(field instanceof HTMLInputElement) || isSecret(field)) return false;
    const { width, height } = unclippedBox(field);
    return width <= 4 || height <= 4 || !field.checkVisibility({ opacityProperty: true });
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
    const indented = isProxy(field) && !hasIndentation(read(field), expected);
    return outcome(field, { connected, holds: holds(field, expected), indented, ...released });
  };

  // What a frame of a rich editor contains: its editable body, or the only editable element; null for another frame.
  const editableContent = () => {
    if (document.body?.isContentEditable) return document.body;
    const hosts = search(document, (node) => node.isContentEditable && node === editingHost(node) && isVisible(node));
    return hosts.length === 1 ? hosts[0] : null;
  };

  Object.assign(fields, { beginFill, beginType, paste, finish, editableContent });
})()
