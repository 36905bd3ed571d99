// The box of an element in the viewport of its frame: [left, top, width, height].
function () {
  const shown = this.getClientRects().length ? this : this.firstElementChild || this; // For display: contents.
  const box = shown.getBoundingClientRect();
  return [box.left, box.top, box.width, box.height];
}
