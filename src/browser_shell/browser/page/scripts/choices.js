// Functions for check boxes and lists of options, and for reading the state of fields. Installed after fields.js, in
// `browserShell.fields`.
(() => {
  const { viewOf, isVisible, until, fields } = globalThis.browserShell;
  if (fields.checkable) return;
  const {
    kindOf,
    roleOf,
    isTextField,
    search,
    controlOf,
    isSecret,
    ancestor,
    obstacle,
    takeFocus,
    read,
    successorOf,
    nextTask,
  } = fields;

  // --- Check boxes --------------------------------------------------------------------------------------------------

  const CHECKABLE_ROLES = ["checkbox", "switch", "radio", "menuitemcheckbox", "menuitemradio"];

  const isCheckable = (element) =>
    ["checkbox", "radio"].includes(kindOf(element)) || CHECKABLE_ROLES.includes(roleOf(element));

  // The check box, radio button or switch that an element is, labels, contains or belongs to; null if there is none.
  const checkable = (element) => {
    const found = controlOf(element, isCheckable);
    if (isCheckable(found)) return found;
    const label = viewOf(element).closest("label");
    if (label?.control && isCheckable(label.control)) return label.control;
    const around = viewOf(element).closest(CHECKABLE_ROLES.map((role) => `[role=${role}]`).join());
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

  // Whether the mouse cannot reach the check box, because the page hides it and draws its own.
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
          const x = box.left + box.width * right,
            y = box.top + box.height * down;
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
      options.find((option) => option.value === value) ||
      options.find((option) => words(option.label) === words(value));
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
    const values = (options) =>
      options
        .map((option) => option.value)
        .sort()
        .join("\n");
    return {
      selected: selected.map((option) => option.value),
      labels: selected.map((option) => words(option.label)),
      holds: values(selected) === values([...new Set(wanted)]),
      connected: field.isConnected,
    };
  };

  const comboKind = (element) => {
    if (element.hasAttribute("aria-haspopup") || ["combobox", "listbox", "button"].includes(roleOf(element)))
      return "combobox";
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
    if (getComputedStyle(element).display === "contents")
      return [...element.children].some(isShown) || hasText(element);
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

  Object.assign(fields, {
    checkable,
    beginCheck,
    labelOf,
    safePoint,
    awaitChecked,
    select,
    valueOf,
    isShown,
    isEnabled,
    isChecked,
  });
})()
