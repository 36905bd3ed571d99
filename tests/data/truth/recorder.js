// Part of every page of the truth table, and the first script of the page. Records the events that the page sees, and
// sends its log and the values of its fields to the test when the test's web server asks for them. Uses no function of
// a later script, so that a hostile page cannot change what is recorded.
(() => {
  const ROW = '%ROW%', PAGE = '%PAGE%'
  const KINDS = ['mousedown', 'mouseup', 'click', 'dblclick', 'contextmenu', 'auxclick', 'keydown', 'keypress', 'keyup',
    'beforeinput', 'input', 'change', 'submit', 'reset', 'dragstart', 'drop', 'dragend', 'focusin']
  const post = navigator.sendBeacon.bind(navigator), stringify = JSON.stringify, parse = JSON.parse, Source = EventSource
  const inDocument = Document.prototype.querySelectorAll, inShadow = DocumentFragment.prototype.querySelectorAll
  const pathOf = Event.prototype.composedPath
  const find = (root, css) => (root === document ? inDocument : inShadow).call(root, css)
  let log = []

  // The page can add entries, state of its own, and its closed shadow roots.
  window.note = text => { log.push('note@' + text) }
  window.app = {}
  window.roots = [document]

  const nameOf = node => node === window ? 'window' : node === document ? 'document' : node.id || node.localName || '?'
  const nameOfKey = event => ':' + ['Control', 'Alt', 'Meta'].filter(name => event[name[0] === 'C' ? 'ctrlKey' :
    name[0] === 'A' ? 'altKey' : 'metaKey'] && event.key !== name).map(name => name + '+').join('') + event.key
  for (const kind of KINDS) {
    addEventListener(kind, event => {
      const key = kind.startsWith('key') ? nameOfKey(event) : ''
      log.push(kind + key + '@' + nameOf(pathOf.call(event)[0]) + (event.isTrusted ? '' : '!'))
    }, true)
  }

  const valueOf = element => {
    if (element instanceof HTMLInputElement) {
      if (element.type === 'checkbox' || element.type === 'radio') return element.checked
      return element.type === 'file' ? element.files.length : element.value
    }
    if (element instanceof HTMLTextAreaElement) return element.value
    if (element instanceof HTMLSelectElement) {
      const chosen = Array.from(element.selectedOptions, option => option.value)
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
    let element = document.activeElement
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement
    return element ? element.id || element.localName : ''
  }
  const selectedText = () => {
    const field = document.activeElement
    if (field && typeof field.selectionStart === 'number') return field.value.slice(field.selectionStart, field.selectionEnd)
    return String(getSelection())
  }
  const state = () => {
    const fields = {}, scrolls = {page: scrolled(document.scrollingElement)}
    for (const root of window.roots) {
      for (const element of find(root, FIELDS)) if (element.id) fields[element.id] = valueOf(element)
      for (const element of find(root, '.box')) scrolls[element.id] = scrolled(element)
    }
    return {page: PAGE, url: location.href, title: document.title, log, fields, app: window.app, scrolls,
      active: active(), selection: selectedText()}
  }
  const send = question => post(`/truth/state?row=${ROW}&page=${PAGE}&question=${question}`, stringify(state()))
  let source
  const listen = after => {
    source = new Source(`/truth/questions?row=${ROW}&page=${PAGE}&after=${after}`)
    source.onmessage = message => {
      source.close()
      const question = parse(message.data)
      if (question.script) (0, eval)(question.script)
      send(question.number)
      if (question.number === 1) log = []
      listen(question.number)
    }
  }
  addEventListener('pagehide', () => { send('left'); source?.close() })
  // After the load event, because a request in flight would keep the page loading.
  addEventListener('load', () => listen(0))
})()
