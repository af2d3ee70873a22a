// Fields that the server renders again: in another view, and with the rows of restored text.

(() => {
  "use strict";

  const { find, findAll, listen, csrfToken, isChanged, markSaved, showChanged, updateRows, encodeValues } = agentcms;
  const RENDERED = "fieldset[data-structured], fieldset.picker-field, #mcp-servers, #knowledge-bases";

  // --- another view, and other rows of a search: the inputs change, but not what they mean

  const unchanged = new WeakSet();
  const rendersAgain = (element) => element?.matches?.("[data-structured] [hx-post], [data-filter][hx-post]");

  listen("htmx:before:request", (event) => {
    const control = event.detail.ctx.sourceElement;
    if (rendersAgain(control) && !isChanged(control.form)) unchanged.add(control.form);
  });
  addEventListener("htmx:after:swap", () => {
    const form = find("form[data-fields-url]");
    if (!form || !unchanged.delete(form)) return;
    markSaved(form);
    showChanged(form);
  });

  // --- restored text

  // Replace the fields with rows by those of stored values. Throws if the server does not render them.
  async function renderRows(form, values) {
    const response = await fetch(form.dataset.fieldsUrl, {
      method: "POST",
      headers: { "X-CSRFToken": csrfToken() },
      body: encodeForm(form, values),
    });
    // A redirect leads to the sign-in page.
    if (!response.ok || response.redirected) throw new Error(`The server responded with ${response.status}.`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    findAll("noscript", page).forEach((fallback) => fallback.remove()); // the parser runs no scripts, and shows it
    findAll(RENDERED, form).forEach((field) => {
      const rendered = page.getElementById(field.id);
      if (!rendered) return;
      field.replaceWith(rendered);
      htmx.process(rendered);
      window.AgentEditor?.enhanceAll(rendered);
    });
    updateRows();
  }

  function encodeForm(form, values) {
    const body = new URLSearchParams();
    // Without the token of the page, which may be an old one: the server would prefer it to that of the header.
    const fields = findAll("input[type=hidden][name]:not([name=csrfmiddlewaretoken])", form);
    fields.forEach((field) => body.append(field.name, field.value));
    return encodeValues(values, body);
  }

  Object.assign(agentcms, { renderRows });
})();
