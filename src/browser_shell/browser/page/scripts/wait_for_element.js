// Wait until an element that matches the selector is visible, or with state "hidden" until none is.
function (css, state, milliseconds) {
  const { isVisible, until } = browserShell;
  const roots = (root) => [root, ...[...root.querySelectorAll("*")].filter((e) => e.shadowRoot).flatMap((e) => roots(e.shadowRoot))];
  const matches = () => {
    const found = document.querySelectorAll(css);
    return found.length ? [...found] : roots(document).flatMap((root) => [...root.querySelectorAll(css)]);
  };
  const wanted = state === "visible";
  return until(() => matches().some(isVisible) === wanted, milliseconds, true);
}
