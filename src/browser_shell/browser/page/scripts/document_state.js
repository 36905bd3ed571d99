// Describes the document that a navigation led to. Chromium's own error pages have the name of the error in their text.
async function () {
  const isErrorPage = location.protocol === 'chrome-error:'
  if (isErrorPage && document.readyState === 'loading') {
    await new Promise(resolve => document.addEventListener('DOMContentLoaded', resolve, { once: true }))
  }
  const navigation = performance.getEntriesByType('navigation')[0]
  return {
    url: location.href,
    title: document.title,
    status: navigation ? navigation.responseStatus : 0,
    error: isErrorPage ? document.body.innerText : null,
    signsIn: document.querySelector('input[type=password]') !== null,
  }
}
