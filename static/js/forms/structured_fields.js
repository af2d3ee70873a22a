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

  // --- what somebody types while the server renders: the response would undo it, and is requested again

  const sent = new WeakMap(); // control: the values that its response replaces, as they were sent
  const outdated = new WeakSet(); // controls whose response was dropped

  const valuesIn = (root) => JSON.stringify(findAll("input, select, textarea", root).map(valueOf));

  function valueOf(field) {
    window.AgentEditor?.of(field)?.copy();
    return ["checkbox", "radio"].includes(field.type) ? field.checked : field.value;
  }

  listen("htmx:before:request", ({ detail: { ctx } }) => {
    if (rendersAgain(ctx.sourceElement)) sent.set(ctx.sourceElement, valuesIn(ctx.target));
  });
  listen("htmx:before:swap", (event) => {
    const { sourceElement, target } = event.detail.ctx;
    if (!sent.has(sourceElement) || sent.get(sourceElement) === valuesIn(target)) return;
    event.preventDefault();
    outdated.add(sourceElement);
    unchanged.delete(sourceElement.form);
  });
  listen("htmx:finally:request", ({ detail: { ctx } }) => {
    const control = ctx.sourceElement;
    if (!outdated.delete(control)) return;
    // Not within the request, during which a button is busy.
    setTimeout(() => (control.matches("button") ? control.click() : control.dispatchEvent(new Event("rows-outdated"))));
  });

  // --- restored text

  // Replace the fields with rows by those of stored values. Throws if the server does not render them. Until then the
  // fields cannot be used, because what is typed there would be replaced too.
  async function renderRows(form, values) {
    const fields = findAll(RENDERED, form);
    fields.forEach((field) => (field.inert = true));
    try {
      replaceFields(fields, await requestFields(form, values));
    } finally {
      fields.forEach((field) => (field.inert = false));
    }
    updateRows();
  }

  async function requestFields(form, values) {
    const response = await fetch(form.dataset.fieldsUrl, {
      method: "POST",
      headers: { "X-CSRFToken": csrfToken() },
      body: encodeForm(form, values),
    });
    // A redirect leads to the sign-in page.
    if (!response.ok || response.redirected) throw new Error(`The server responded with ${response.status}.`);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  function replaceFields(fields, page) {
    findAll("noscript", page).forEach((fallback) => fallback.remove()); // the parser runs no scripts, and shows it
    fields.forEach((field) => {
      const rendered = page.getElementById(field.id);
      if (!rendered) return;
      field.replaceWith(rendered);
      htmx.process(rendered);
      window.AgentEditor?.enhanceAll(rendered);
    });
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
