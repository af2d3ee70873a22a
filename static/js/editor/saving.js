// Saving with htmx: the form stays in the page, and what was typed since the request was sent is still unsaved.

(() => {
  "use strict";

  const { listen, updateCounter, serialize, markSaved, keyOf, removeText, parseTrigger, store } = agentcms;
  const sent = new WeakMap(); // form: its values and its storage key when the request was sent

  listen("htmx:before:request", (event) => {
    const form = event.detail.ctx.sourceElement; // not the form of the request: other elements include the form
    if (form?.matches?.("form[data-save]")) sent.set(form, { values: serialize(form), key: keyOf(form) });
  });

  listen("htmx:finally:request", (event) => {
    const { ctx } = event.detail;
    const form = ctx.sourceElement;
    if (!sent.has(form)) return;
    const { values, key } = sent.get(form);
    sent.delete(form);
    const events = parseTrigger(ctx.hx?.trigger);
    if (!("agent-saved" in events)) return;
    removeText(key);
    if (form.isConnected) startNextVersion(form, values, events["agent-saved"]?.base);
  });

  function startNextVersion(form, values, base) {
    if (base) form.dataset.base = base;
    // The name and the message described the version that was saved.
    [...form.elements].filter((field) => field.matches("[data-of-save]")).forEach((field) => {
      field.value = "";
      updateCounter(field);
    });
    markSaved(form, values);
    store(form);
  }
})();
