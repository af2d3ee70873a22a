// The comparison of two versions: offer the unsaved text of this browser as either side.

(() => {
  "use strict";

  const { find, listen, onAdded, findNewestText, csrfToken } = agentcms;
  const UNSAVED = "unsaved";
  const sidesOf = (form) => ["from", "to"].map((name) => form.elements.namedItem(name));

  onAdded("form[data-compare]", (form) => {
    const text = findNewestText(form.dataset.agent);
    if (text) sidesOf(form).forEach(offerUnsavedText);
    form.addEventListener("submit", (event) => {
      if (!text || !sidesOf(form).some((select) => select.value === UNSAVED)) return;
      event.preventDefault();
      postComparison(form, text);
    });
  });

  listen("click", (event) => {
    const form = event.target.closest("[data-swap]")?.form;
    if (!form) return;
    const [from, to] = sidesOf(form);
    [from.value, to.value] = [to.value, from.value];
    form.requestSubmit();
  });

  function offerUnsavedText(select) {
    if (!find(`[value="${UNSAVED}"]`, select)) select.add(new Option("My unsaved text", UNSAVED), 0);
  }

  // The server compares the text as the editor would send it.
  function postComparison(form, text) {
    const comparison = document.createElement("form");
    comparison.method = "post";
    comparison.action = form.action;
    comparison.hidden = true;
    for (const [name, value, checked] of text.values) {
      if (checked !== false) [value].flat().forEach((single) => addField(comparison, name, single));
    }
    addField(comparison, "head", text.head);
    sidesOf(form).forEach((select) => addField(comparison, select.name, select.value));
    addField(comparison, "layout", form.elements.namedItem("layout").value);
    addField(comparison, "csrfmiddlewaretoken", csrfToken());
    document.body.append(comparison);
    comparison.submit();
  }

  function addField(form, name, value) {
    const field = document.createElement("textarea"); // an input would remove line breaks
    field.name = name;
    field.value = value ?? "";
    form.append(field);
  }
})();
