"""Commands that read the page or an element: `get url|title|text|value|count|attr` and `is visible|enabled|checked`."""

from __future__ import annotations

from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.selectors import count_elements
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject

_TEXT = """function () {
  if (browserShell.fields.kindOf(this) === "frame") return null;
  return typeof this.innerText === "string" ? this.innerText : this.textContent;
}"""
_BODY_TEXT = "function () { return document.body?.innerText ?? '' }"
_IS_FIELD = "function () { return this.matches('input, textarea, select') }"
_ATTRIBUTE = "function (name) { return this.getAttribute(name) }"
_VALUE = "function () { return browserShell.fields.valueOf(this) }"
_VISIBLE = "function () { return browserShell.fields.isShown(this) }"
_ENABLED = "function () { return browserShell.fields.isEnabled(this) }"
_CHECKED = "function () { return browserShell.fields.isChecked(this) }"


async def get(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `get url`, `get title`, or `get text|value|count|attr` of an element. Raises: ActFailed."""
    match plan.operands:
        case (("url" | "title") as key,):
            url, title = await page.location()
            return {key: url if key == "url" else title}
        case ("count", selector):
            return {"count": await count_elements(page, selector)}
        case ("attr", name, selector):
            return {"attr": name, "value": await (await page.element(selector)).call(_ATTRIBUTE, name)}
        case ("value", selector):
            return await _value(await page.element(selector))
        case _:
            return await _text(page, await page.element(plan.operands[1]))


async def is_(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `is visible|enabled|checked SEL`. Raises: ActFailed."""
    question, selector = plan.operands
    element = await page.element(selector)
    match question:
        case "visible":
            return {"visible": await _is_visible(page, element)}
        case "enabled":
            return {"enabled": bool(await element.call(_ENABLED))}
        case _:
            checked = await element.call(_CHECKED)
            if checked is None:
                raise ActFailed(
                    ErrorCode.COMMAND_FAILED,
                    f"{selector} is not a check box, radio button, switch or option",
                    advice="Use the ref of the check box itself; snapshot -i lists it.",
                )
            return {"checked": bool(checked)}


async def _text(page: Page, element: Element) -> JsonObject:
    """Return the text as a person sees it. The text of a frame is that of its document."""
    text = await element.call(_TEXT)
    frame = await page.content_frame(element) if text is None else None
    if frame is not None:
        text = await page.call_function(frame, _BODY_TEXT)
    if text == "" and await element.call(_IS_FIELD):
        page.notes.append(f"{element.label} is a field; get value {element.label} reads what it holds")
    return {"text": text or ""}


async def _value(element: Element) -> JsonObject:
    result = await element.call(_VALUE)
    found = result if isinstance(result, dict) else {}
    match found.get("problem"):
        case "secret":
            raise ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{element.label} holds a secret, and secrets are not read",
                advice="Continue without its value; fill replaces it.",
            )
        case "no value":
            raise ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{element.label} is not a field and has no value",
                advice=f"Use get text {element.label}, or the ref of a field.",
            )
        case _:
            return {"value": found.get("value")}


async def _is_visible(page: Page, element: Element) -> bool:
    """Whether the element, and every frame around it, is visible."""
    inner: Element | None = element
    while inner is not None:
        if not await inner.call(_VISIBLE):
            return False
        inner = await page.owner(inner.frame)
    return True
