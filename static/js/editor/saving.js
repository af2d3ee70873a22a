// Saving with htmx: the form stays in the page, and what was typed since the request was sent is still unsaved.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, updateCounter, parseTrigger } = agentcms;
  const { serialize, markSaved, markLeft, PAGE_ID, keyOf, keyOfEarlier, removeText, store } = agentcms;
  const REFUSALS = [409, 422]; // a conflict, or invalid fields
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
    const saved = parseTrigger(ctx.hx?.trigger)["agent-saved"];
    if (saved) finishSave(form, values, key, saved);
    else if (REFUSALS.includes(ctx.response?.status)) showRefusal();
  });

  function finishSave(form, values, key, { base, reload }) {
    removeText(key);
    removeText(keyOfEarlier(key, PAGE_ID)); // another tab has found the text meanwhile, and offers it
    if (reload) {
      markLeft(form);
      location.href = form.action;
      return;
    }
    openDialog()?.close();
    findAll(".toast-fault").forEach((toast) => toast.remove()); // of an earlier attempt
    if (form.isConnected) startNextVersion(form, values, base);
  }

  // --- the name and the message of the next version: typed in the review, which may be closed and opened again

  const descriptions = {}; // by the name of the field

  listen("input", ({ target }) => {
    if (target.matches?.("[data-of-save]")) descriptions[target.name] = target.value;
  });
  onAdded("[data-of-save]", (field) => {
    if (!descriptions[field.name]) return;
    field.value = descriptions[field.name];
    updateCounter(field);
  });

  // --- the dialogs of a save: the review, and the question before versions of others are published

  const openDialog = () => find("#review-dialog[open], #publish-dialog[open]");

  // The page behind the dialog says why nothing was saved, unless a field of the dialog does.
  function showRefusal() {
    const dialog = openDialog();
    if (dialog && find(".field-error:not([hidden])", dialog)) return;
    // The dialog returns the focus to its opener when it is closed.
    dialog?.addEventListener("close", () => find("#conflict-title")?.focus(), { once: true });
    if (dialog) dialog.close();
    else find("#conflict-title")?.focus();
  }

  function startNextVersion(form, values, base) {
    if (base) form.dataset.base = base;
    // The name and the message described the version that was saved.
    Object.keys(descriptions).forEach((name) => delete descriptions[name]);
    markSaved(form, values);
    store(form);
  }
})();
