// Functions shared by all page functions, installed once per document as `browserShell`.
// Runs in an isolated world: it shares the DOM with the page, and the page cannot access its functions.
(() => {
  // The first document of a frame may be replaced while its window stays.
  if (globalThis.browserShell?.document === document) return;

  // --- Elements -----------------------------------------------------------------------------------------------------

  // The fields of a form hide properties of the form itself, for example `<input name=id>`. This view has no fields.
  const WITHOUT_FIELDS = {
    get: (form, name) => {
      const value = Reflect.get(HTMLFormElement.prototype, name, form);
      return typeof value === "function" ? value.bind(form) : value;
    },
  };
  const viewOf = (node) => (node instanceof HTMLFormElement ? new Proxy(node, WITHOUT_FIELDS) : node);

  // Parent in the composed tree: through slots and out of shadow roots, open or closed.
  const parentOf = (node) => {
    const { assignedSlot, parentNode, host } = viewOf(node);
    return assignedSlot || parentNode || host || null;
  };

  const contains = (ancestor, node) => {
    for (let next = node; next; next = parentOf(next)) if (next === ancestor) return true;
    return false;
  };

  const isVisible = (element) =>
    viewOf(element).checkVisibility({ visibilityProperty: true }) && viewOf(element).getClientRects().length > 0;

  const shorten = (text, length) => {
    const words = (text || "").replace(/\s+/g, " ").trim();
    return words.length > length ? `${words.slice(0, length)}…` : words;
  };

  // A short description for messages, for example: <div#cookie-banner> "We use cookies".
  const describe = (node) => {
    if (!node) return "nothing";
    const element = viewOf(node);
    const id = element.id ? `#${shorten(element.id, 40)}` : "";
    const name = typeof element.className === "string" ? element.className.trim().split(/\s+/)[0] : "";
    const label = element.getAttribute?.("aria-label") || element.innerText || "";
    const text = shorten(label, 40);
    return `<${element.nodeName.toLowerCase()}${id || (name ? `.${shorten(name, 40)}` : "")}>${text ? ` "${text}"` : ""}`;
  };

  const deepActiveElement = () => {
    let active = document.activeElement;
    while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
    return active;
  };

  const isField = (element) =>
    Boolean(element) && (viewOf(element).isContentEditable || viewOf(element).matches?.("input, textarea, select"));

  // --- Points: where the mouse can reach an element -----------------------------------------------------------------

  const FRACTIONS = [
    [0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9],
  ];

  // Whether `hit` is a box that a component draws around and over its field, for example the select of Shoelace. A box
  // that contains another control is not one.
  const FIELD_BOX_LEVELS = 3;
  const isBoxOf = (field, hit) => {
    if (!isField(field) || !hit || hit === field) return false;
    let around = field;
    for (let level = 0; level < FIELD_BOX_LEVELS && around && around !== hit; level++) around = parentOf(around);
    const isOther = (control) => control !== field && control.ariaHidden !== "true" && isVisible(control);
    return around === hit && ![...hit.querySelectorAll("input, textarea, select, button, a[href]")].some(isOther);
  };

  // Whether a click on `hit` is a click on the target: inside it, on the label of the field, or on its box.
  const receives = (target, hit) => {
    if (!hit) return false;
    if (contains(target, hit) || isBoxOf(target, hit)) return true;
    for (let next = hit; next; next = parentOf(next)) {
      if (next instanceof HTMLLabelElement) return next.control === target;
    }
    return target instanceof HTMLAreaElement && hit instanceof HTMLImageElement && hit.useMap === `#${mapName(target)}`;
  };

  const mapName = (area) => area.closest("map")?.name || "";

  const areaBox = (area) => {
    const image = document.querySelector(`img[usemap="#${CSS.escape(mapName(area))}"]`);
    if (!image) return [];
    const at = image.getBoundingClientRect();
    const numbers = area.coords.split(",").map(Number);
    if (area.shape === "circle") return [new DOMRect(at.left + numbers[0] - 1, at.top + numbers[1] - 1, 2, 2)];
    const xs = numbers.filter((_, index) => index % 2 === 0);
    const ys = numbers.filter((_, index) => index % 2 === 1);
    const [left, top] = [Math.min(...xs), Math.min(...ys)];
    return [new DOMRect(at.left + left, at.top + top, Math.max(...xs) - left, Math.max(...ys) - top)];
  };

  const boxes = (element) => {
    const all = element instanceof HTMLAreaElement ? areaBox(element) : [...viewOf(element).getClientRects()];
    return all.filter((box) => box.width >= 1 && box.height >= 1).sort((a, b) => b.width * b.height - a.width * a.height);
  };

  const hitAt = (element, x, y) => {
    const root = viewOf(element).getRootNode();
    return (root.elementFromPoint ? root : document).elementFromPoint(x, y);
  };

  const visiblePart = (box) => {
    const left = Math.max(box.left, 0), top = Math.max(box.top, 0);
    return new DOMRect(left, top, Math.min(box.right, innerWidth) - left, Math.min(box.bottom, innerHeight) - top);
  };

  // Find a point at which the mouse reaches the element. Coordinates are those of the frame's viewport.
  // Returns {x, y, box} or {problem, ...}.
  const locate = (element, offset) => {
    if (!viewOf(element).isConnected) return { problem: "gone" };
    if (viewOf(element).matches(":disabled")) return { problem: "disabled" };
    let shown = boxes(element);
    let target = element;
    if (!shown.length) {
      // A field that is hidden behind its label is clicked through the label.
      target = [...(viewOf(element).labels || [])].find((label) => boxes(label).length) || element;
      shown = boxes(target);
    }
    if (!shown.length || !viewOf(target).checkVisibility({ visibilityProperty: true })) {
      if (!(element instanceof HTMLAreaElement) || !shown.length) return { problem: "invisible" };
    }
    if (offset) return locateOffset(element, offset);
    let covering = null;
    for (const box of shown.slice(0, 4)) {
      const part = visiblePart(box);
      if (part.width < 1 || part.height < 1) continue;
      for (const [right, down] of FRACTIONS) {
        const x = part.left + part.width * right, y = part.top + part.height * down;
        const hit = hitAt(target, x, y);
        if (receives(element, hit) || contains(target, hit)) return { x, y, box: [box.left, box.top, box.width, box.height] };
        covering ||= hit;
      }
    }
    return covering ? { problem: "covered", by: describe(covering) } : { problem: "outside" };
  };

  const locateOffset = (element, [right, down]) => {
    const box = viewOf(element).getBoundingClientRect();
    if (right >= box.width || down >= box.height) {
      return { problem: "offset", width: Math.floor(box.width), height: Math.floor(box.height) };
    }
    const x = box.left + right, y = box.top + down;
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return { problem: "outside" };
    const hit = hitAt(element, x, y);
    if (!receives(element, hit)) return { problem: "covered", by: describe(hit) };
    return { x, y, box: [box.left, box.top, box.width, box.height] };
  };

  // Translate a point of a frame's viewport to its parent's viewport. `owner` is the frame's element.
  const outOfFrame = (owner, x, y) => {
    const box = owner.getBoundingClientRect(), style = getComputedStyle(owner);
    const scaleX = box.width / (owner.offsetWidth || 1), scaleY = box.height / (owner.offsetHeight || 1);
    const outerX = box.left + (owner.clientLeft + parseFloat(style.paddingLeft) + x) * scaleX;
    const outerY = box.top + (owner.clientTop + parseFloat(style.paddingTop) + y) * scaleY;
    const hit = hitAt(owner, outerX, outerY);
    if (!contains(owner, hit)) return hit ? { problem: "covered", by: describe(hit) } : { problem: "outside" };
    return { x: outerX, y: outerY };
  };

  // The innermost element at a point of the viewport, also inside open shadow roots; null outside of the viewport.
  const elementAt = (x, y) => {
    if (x >= innerWidth || y >= innerHeight) return null;
    let hit = document.elementFromPoint(x, y);
    while (hit?.shadowRoot?.elementFromPoint(x, y) && hit.shadowRoot.elementFromPoint(x, y) !== hit) {
      hit = hit.shadowRoot.elementFromPoint(x, y);
    }
    return hit;
  };

  const STYLED_MS = 100;
  let styledAt = -Infinity; // The last change of a style attribute. Scripts animate with them.

  // Whether an animation runs that will end.
  const isAnimated = () =>
    document.getAnimations().some(({ playState, effect }) =>
      playState === "running" && effect?.getComputedTiming().endTime < Infinity);

  const positionOf = (element) => {
    const { left, top, width, height } = viewOf(element).getBoundingClientRect();
    return `${left},${top},${width},${height}`;
  };

  // Wait, for a bounded time, until an element that is not hidden has a size and the page no longer moves it.
  const untilSteady = async (element, milliseconds) => {
    const end = performance.now() + milliseconds;
    while (!boxes(element).length && viewOf(element).checkVisibility() && performance.now() < end) await nextFrame();
    let before = null;
    while ((isAnimated() || performance.now() - styledAt < STYLED_MS) && performance.now() < end) {
      const now = positionOf(element);
      if (now === before && !isAnimated()) return;
      before = now;
      await nextFrame();
    }
  };

  // Wait until the element has the same box in two animation frames, for a bounded time.
  const waitUntilStill = async (element, milliseconds) => {
    const start = performance.now();
    let before = null;
    while (performance.now() - start < milliseconds) {
      const now = positionOf(element);
      if (now === before) return true;
      before = now;
      await new Promise((resolve) => {
        requestAnimationFrame(resolve);
        setTimeout(resolve, 50);
      });
    }
    return false;
  };

  // --- Changes: what happened since an act began --------------------------------------------------------------------

  // A node that changed NOISE_COUNT times in NOISE_MS before the act changes without it, for example a clock.
  const NOISE_MS = 1500;
  const NOISE_COUNT = 3;
  const SAME_TASK_MS = 5;
  const MAX_NOTED = 1000;
  const ATTRIBUTES = [
    "hidden", "disabled", "open", "checked", "class", "value", "src", "href", "selected", "readonly", "title",
    "aria-expanded", "aria-checked", "aria-selected", "aria-hidden", "aria-pressed", "aria-current", "aria-label",
    "aria-busy", "aria-invalid", "aria-disabled", "aria-valuenow", "data-state", "transform", "points", "d",
  ];
  const POINTER_EVENTS = [
    "mouseover", "pointerdown", "pointerup", "mousedown", "mouseup", "click", "dblclick", "contextmenu", "dragstart", "drop",
  ];
  const EFFECT_EVENTS = ["input", "change", "toggle"];
  const DISPLAY = /(?:^|;)\s*(?:display|visibility)\s*:[^;]*/g;

  const history = new WeakMap(); // element -> times of its last changes
  let watch = null;

  const isNoise = (element) => {
    const times = history.get(element) || [];
    return times.length >= NOISE_COUNT && times.every((time) => watch.start - time < NOISE_MS);
  };

  const remember = (element, now) => {
    const times = history.get(element) || [];
    // Nodes that the parser adds are not counted, and the changes of one task count once.
    if (document.readyState === "loading" || now - (times.at(-1) ?? -Infinity) < SAME_TASK_MS) return;
    history.set(element, [...times, now].slice(-NOISE_COUNT));
  };

  const noteChange = (node) => {
    const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentNode || node;
    const now = performance.now();
    if (!watch) {
      remember(element, now);
      return;
    }
    if (watch.noted.length < MAX_NOTED) watch.noted.push([element, now]);
    if (!isNoise(element)) {
      watch.changes += 1;
      watch.last = now;
      watch.check?.();
    }
  };

  // Animations change the style attribute constantly. Only `display` and `visibility` are compared.
  const displayOf = (style) => ((style || "").match(DISPLAY) || []).join();

  const observeRoot = (root) => {
    new MutationObserver((records) => {
      for (const record of records) noteChange(record.target);
    }).observe(root, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES });
    new MutationObserver((records) => {
      styledAt = performance.now();
      for (const { target, oldValue } of records) {
        if (displayOf(oldValue) !== displayOf(target.getAttribute("style"))) noteChange(target);
      }
    }).observe(root, { subtree: true, attributeFilter: ["style"], attributeOldValue: true });
  };

  const onEvent = (event) => {
    if (!watch || !event.isTrusted) return;
    if (EFFECT_EVENTS.includes(event.type)) noteChange(event.target);
    if (!POINTER_EVENTS.includes(event.type)) return;
    const path = event.composedPath();
    const reached =
      Boolean(watch.target) && (path.some((node) => node === watch.target) || isBoxOf(watch.target, path[0]));
    const label = path.find((node) => node instanceof HTMLLabelElement);
    const known = watch.events.find((entry) => entry.event === event);
    if (known) {
      known.reached ||= reached; // Seen again inside a closed shadow root.
    } else {
      const viaLabel = Boolean(label) && Boolean(watch.target) && label.control === watch.target;
      watch.events.push({ event, type: event.type, reached: reached || viaLabel, on: describe(path[0]) });
      watch.drawn ||= path[0] instanceof HTMLCanvasElement;
    }
  };

  const shadowRootsAround = (element) => {
    const roots = [];
    for (let root = viewOf(element).getRootNode(); root instanceof ShadowRoot; root = root.host.getRootNode()) roots.push(root);
    return roots;
  };

  const observed = new WeakSet(); // Shadow roots with an observer.

  // Begin to record changes, and the mouse events that reach `target`.
  const arm = (target) => {
    for (const [element, time] of watch?.noted || []) remember(element, time); // Before the act.
    disarm();
    const roots = target ? shadowRootsAround(target) : [];
    for (const root of roots) for (const type of POINTER_EVENTS) root.addEventListener(type, onEvent, true);
    for (const root of roots) if (!observed.has(root)) { observed.add(root); observeRoot(root); }
    watch = {
      target: target || null, position: target ? positionOf(target) : "", roots, start: performance.now(), changes: 0, last: 0,
      events: [], noted: [], url: location.href, focus: deepActiveElement(), check: null, drawn: false,
    };
  };

  const disarm = () => {
    for (const root of watch?.roots || []) {
      for (const type of POINTER_EVENTS) root.removeEventListener(type, onEvent, true);
    }
    watch = null;
  };

  // Whether the target of `arm` is a control that may act on the press alone: it has opened a list or a menu over itself,
  // or it is an entry of a list or a menu, which moves away when it closes.
  const actsOnPress = () => {
    const target = watch?.target ? viewOf(watch.target) : null;
    if (!target?.isConnected) return false;
    if (target.closest("[role=option], [role^=menuitem]")) return true;
    const opener = target.closest("[aria-haspopup], [aria-expanded], [role=combobox]");
    return Boolean(opener) && opener.ariaExpanded !== "false" && watch.position === positionOf(watch.target);
  };

  // The mouse events of one type since `arm`.
  const events = (type) => {
    const found = (watch?.events || []).filter((entry) => entry.type === type);
    return { count: found.length, reached: found.filter((entry) => entry.reached).length, on: found.at(-1)?.on || "" };
  };

  const report = (current) => {
    const focus = deepActiveElement();
    return {
      changed: current.changes > 0 || current.url !== location.href,
      focus: focus !== current.focus && isField(focus) ? describe(focus) : "",
      drawn: current.drawn, // A canvas may have been redrawn, which changes no element.
    };
  };

  // Wait for the first change, at most `first` milliseconds; with `quiet`, until nothing has
  // changed for `quiet` milliseconds. Never longer than `cap` milliseconds.
  const settle = (first, quiet, cap) =>
    new Promise((resolve) => {
      const current = watch; // A later act may begin before this wait has ended.
      if (!current) return resolve({ changed: false, focus: "" });
      const start = performance.now();
      let timer = 0;
      const finish = () => {
        current.check = null;
        resolve(report(current));
        if (watch === current) disarm();
      };
      current.check = () => {
        clearTimeout(timer);
        const now = performance.now(), elapsed = now - start, { changed } = report(current);
        const idle = now - Math.max(current.last, current.start);
        if (elapsed >= cap) return finish();
        if (quiet === 0 ? changed || elapsed >= first : elapsed >= first && (!changed || idle >= quiet)) return finish();
        const rest = quiet > 0 && changed ? Math.max(quiet - idle, first - elapsed) : first - elapsed;
        timer = setTimeout(() => current.check?.(), Math.max(1, Math.min(rest, cap - elapsed)));
      };
      current.check();
    });

  observeRoot(document);
  for (const type of [...POINTER_EVENTS, ...EFFECT_EVENTS]) addEventListener(type, onEvent, true);

  // --- Waits --------------------------------------------------------------------------------------------------------

  const nextFrame = () =>
    new Promise((resolve) => {
      requestAnimationFrame(resolve);
      setTimeout(resolve, 50); // A hidden tab gets no animation frames.
    });

  // Resolve to true when `test` holds, or to false when the time is over.
  // `test` runs after each change of the document, or with `everyFrame` in each animation frame.
  const until = async (test, milliseconds, everyFrame = false) => {
    const end = performance.now() + milliseconds;
    let wake = () => {};
    const observer = new MutationObserver(() => wake());
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    try {
      while (!test()) {
        const rest = end - performance.now();
        if (rest <= 0) return false;
        if (!everyFrame) await new Promise((resolve) => { wake = resolve; setTimeout(resolve, Math.min(rest, 500)); });
        if (!test()) await nextFrame(); // At most one test per animation frame, and one more after the last frame.
      }
      return true;
    } finally {
      observer.disconnect();
    }
  };

  const hasText = (text) => Boolean(document.body) && document.body.innerText.includes(text);

  globalThis.browserShell = {
    document, viewOf, parentOf, contains, isVisible, shorten, describe, deepActiveElement, isField, receives, boxes,
    locate, outOfFrame, elementAt, untilSteady, waitUntilStill, arm, disarm, actsOnPress, events, report, settle, until, nextFrame, hasText,
  };
})()
