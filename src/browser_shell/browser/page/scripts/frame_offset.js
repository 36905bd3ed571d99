// The position of the content of a frame element in the viewport around it: [left, top].
function () {
  const box = this.getBoundingClientRect(), style = getComputedStyle(this);
  return [box.left + this.clientLeft + parseFloat(style.paddingLeft), box.top + this.clientTop + parseFloat(style.paddingTop)];
}
