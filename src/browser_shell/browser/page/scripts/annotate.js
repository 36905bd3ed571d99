// Draw a border and a ref over each control. Returns the element that holds the drawing.
// A popover is above everything else, including modal dialogs. Boxes are relative to the picture at (left, top).
function (annotations, left, top) {
  const host = document.createElement("div");
  host.popover = "manual";
  const root = host.attachShadow({ mode: "closed" });
  const style = (element, values) => Object.assign(element.style, values);
  style(host, {
    position: "absolute", inset: "auto", left: `${left}px`, top: `${top}px`, width: "0", height: "0", margin: "0",
    padding: "0", border: "0", background: "none", overflow: "visible", pointerEvents: "none", color: "#fff",
  });
  for (const { box, ref } of annotations) {
    const frame = document.createElement("div");
    style(frame, {
      position: "absolute", left: `${box.x}px`, top: `${box.y}px`, width: `${box.width}px`, height: `${box.height}px`,
      boxSizing: "border-box", border: "2px solid #d00",
    });
    const label = document.createElement("div");
    label.textContent = ref;
    style(label, {
      position: "absolute", left: `${Math.max(0, box.x)}px`, top: `${Math.max(0, box.y - 13)}px`, background: "#d00",
      color: "#fff", font: "bold 11px/13px sans-serif", padding: "0 2px", whiteSpace: "nowrap",
    });
    root.append(frame, label);
  }
  document.documentElement.append(host);
  host.showPopover();
  return host;
}
