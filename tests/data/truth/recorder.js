// Part of every page of the truth table, and the first script of the page. Records the events that the page sees, and
// sends its log and the values of its fields to the test when the test's web server asks for them. Uses no function of
// a later script, so that a hostile page cannot change what is recorded.
(() => {
  const ROW = '%ROW%', PAGE = '%PAGE%'
  const KINDS = ['mousedown', 'mouseup', 'click', 'dblclick', 'contextmenu', 'auxclick', 'keydown', 'keypress', 'keyup',
    'beforeinput', 'input', 'change', 'submit', 'reset', 'dragstart', 'drop', 'dragend', 'focusin']
  const post = navigator.sendBeacon.bind(navigator), stringify = JSON.stringify, parse = JSON.parse, Source = EventSource
  const inDocument = Document.prototype.querySelectorAll, inShadow = DocumentFragment.prototype.querySelectorAll
  const pathOf = Event.prototype.composedPath, apply = Reflect.apply, listOf = Array.from
  const reader = (type, name) => {
    const { get } = Object.getOwnPropertyDescriptor(type.prototype, name)
    return node => apply(get, node, [])
  }
  const valueOfInput = reader(HTMLInputElement, 'value'), isChecked = reader(HTMLInputElement, 'checked')
  const valueOfArea = reader(HTMLTextAreaElement, 'value'), optionsOf = reader(HTMLSelectElement, 'selectedOptions')
  const idOf = reader(Element, 'id')
  const activeOf = reader(Document, 'activeElement'), scrollingOf = reader(Document, 'scrollingElement')
  const find = (root, css) => apply(root === document ? inDocument : inShadow, root, [css])
  let log = []

  // The page can add entries, state of its own, and its closed shadow roots.
  window.note = text => { log[log.length] = 'note@' + text }
  window.app = {}
  window.roots = [document]

  const nameOf = node => node === window ? 'window' : node === document ? 'document' : idOf(node) || node.localName
  const nameOfKey = ({key, ctrlKey, altKey, metaKey}) => (ctrlKey && key !== 'Control' ? ':Control+' :
    altKey && key !== 'Alt' ? ':Alt+' : metaKey && key !== 'Meta' ? ':Meta+' : ':') + key
  for (const kind of KINDS) {
    addEventListener(kind, event => {
      const key = kind.startsWith('key') ? nameOfKey(event) : ''
      log[log.length] = kind + key + '@' + nameOf(apply(pathOf, event, [])[0]) + (event.isTrusted ? '' : '!')
    }, true)
  }

  const valueOf = element => {
    if (element instanceof HTMLInputElement) {
      if (element.type === 'checkbox' || element.type === 'radio') return isChecked(element)
      return element.type === 'file' ? element.files.length : valueOfInput(element)
    }
    if (element instanceof HTMLTextAreaElement) return valueOfArea(element)
    if (element instanceof HTMLSelectElement) {
      const chosen = listOf(optionsOf(element), option => option.value)
      return element.multiple ? chosen : chosen[0] ?? null
    }
    if (element instanceof HTMLDetailsElement || element instanceof HTMLDialogElement) return element.open
    if (element.isContentEditable) return element.innerText.replace(/\n$/, '') // An empty editor has a line break.
    return element.getAttribute('aria-checked') ?? element.getAttribute('aria-selected') ??
      element.getAttribute('aria-pressed') ?? element.getAttribute('aria-expanded')
  }
  const FIELDS = 'input,textarea,select,details,dialog,[contenteditable],[role]'
  const scrolled = element => [Math.round(element.scrollLeft), Math.round(element.scrollTop)]
  const active = () => {
    let element = activeOf(document)
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement
    return element ? element.id || element.localName : ''
  }
  const selectedText = () => {
    const field = activeOf(document)
    if (field && typeof field.selectionStart === 'number') return field.value.slice(field.selectionStart, field.selectionEnd)
    return String(getSelection())
  }
  const state = () => {
    const fields = {}, scrolls = {page: scrolled(scrollingOf(document))}
    for (const root of window.roots) {
      for (const element of find(root, FIELDS)) if (element.id) fields[element.id] = valueOf(element)
      for (const element of find(root, '.box')) scrolls[element.id] = scrolled(element)
    }
    return {page: PAGE, url: location.href, title: document.title, log, fields, app: window.app, scrolls,
      active: active(), selection: selectedText()}
  }
  const send = question => post(`/truth/state?row=${ROW}&page=${PAGE}&question=${question}`, stringify(state()))
  let source
  const waitForQuestion = after => {
    source = new Source(`/truth/questions?row=${ROW}&page=${PAGE}&after=${after}`)
    source.onmessage = message => {
      source.close()
      const question = parse(message.data)
      if (question.script) (0, eval)(question.script)
      send(question.number)
      if (question.number === 1) log = []
      waitForQuestion(question.number)
    }
  }
  addEventListener('pagehide', () => { send('left'); source?.close() })
  // After the load event, because a request in flight would keep the page loading.
  addEventListener('load', () => waitForQuestion(0))
})()
