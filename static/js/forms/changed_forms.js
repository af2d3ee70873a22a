// Forms with unsaved changes: detect them, mark them, and warn before the page is left.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded } = agentcms;
  const IGNORED_TYPES = ["hidden", "password", "file", "submit", "button", "reset"];
  const SIGN_OUT_QUESTION = "You have unsaved changes. Signing out discards them.";

  const savedValues = new WeakMap(); // form: its values as JSON when it was loaded or last saved
  const left = new WeakSet(); // forms that the user leaves on purpose

  // Return the values of a form as [name, value, checked] for boxes, else [name, value].
  function readValues(form) {
    return [...form.elements].filter(isContent).map((field) => {
      if (["checkbox", "radio"].includes(field.type)) return [field.name, field.value, field.checked];
      if (field.type !== "select-multiple") return [field.name, field.value];
      return [field.name, [...field.selectedOptions].map((option) => option.value)];
    });
  }

  function isContent(field) {
    if (!field.name || field.disabled || field.name === "csrfmiddlewaretoken") return false;
    return !field.matches("[data-not-saved], [data-of-save]") && !IGNORED_TYPES.includes(field.type);
  }

  const serialize = (form) => JSON.stringify(readValues(form));
  const markSaved = (form, values = serialize(form)) => savedValues.set(form, values);
  const isTracked = (form) => savedValues.has(form);
  const isChanged = (form) => isTracked(form) && !left.has(form) && savedValues.get(form) !== serialize(form);
  const markLeft = (form) => left.add(form);
  const isLeft = (form) => left.has(form);

  function showChanged(form) {
    const changed = isChanged(form);
    form.toggleAttribute("data-dirty", changed);
    findAll(`[data-dirty-of="${CSS.escape(form.getAttribute("id"))}"]`).forEach((note) => (note.hidden = !changed));
  }

  // What a page shows again beside its errors was not saved. Of a form with recovery, the stored text says so.
  const isRefused = (form) => !form.matches("[data-recover]") && find(".field-error:not([hidden]), .banner-danger", form);

  onAdded("form[data-guard], form[data-recover]", (form) => markSaved(form, isRefused(form) ? "" : serialize(form)));

  // --- leaving

  addEventListener("beforeunload", (event) => {
    if (findAll("form[data-guard]").some(isChanged)) event.preventDefault();
  });

  // After going back, the browser may show this page again from its cache, or fill in what was typed, without an event.
  addEventListener("pageshow", (event) => {
    if (event.persisted) findAll("form[data-guard]").forEach((form) => left.delete(form));
    findAll("form[data-guard]").forEach(showChanged);
  });

  // While capturing, so that unsaved_text.js sees the answer.
  listen(
    "submit",
    (event) => {
      if (!event.target.matches("[data-sign-out]")) return;
      const forms = findAll("form[data-guard]");
      if (forms.some(isChanged) && !confirm(SIGN_OUT_QUESTION)) event.preventDefault();
      else forms.forEach(markLeft);
    },
    { capture: true },
  );

  Object.assign(agentcms, { serialize, readValues, markSaved, isTracked, isChanged, markLeft, isLeft, showChanged });
})();
