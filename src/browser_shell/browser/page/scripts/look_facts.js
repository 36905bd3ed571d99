// Facts that a DOM snapshot does not contain, and the size of the document.
function () {
  const dialogs = [...document.querySelectorAll("dialog[open]")];
  return {
    elements: document.getElementsByTagName("*").length,
    characters: (document.body?.textContent || "").length,
    // Number of the dialog that makes the rest of the page inert, among all open dialogs; -1 without one.
    modal: dialogs.findLastIndex((dialog) => dialog.matches(":modal")),
  };
}
