// Fields of the editor: variables in the instructions, errors in JSON, and model names of the chosen provider.

(() => {
  "use strict";

  const { find, listen, onAdded, linkErrors, showSummary } = agentcms;

  // --- variables

  const VARIABLE = /\{\{\s*([\w.-]+)\s*\}\}/g;

  function listVariables(field) {
    const list = field.id && find(`[data-variables-of="${CSS.escape(field.id)}"]`);
    if (!list) return;
    const names = [...new Set([...field.value.matchAll(VARIABLE)].map((match) => match[1]))];
    list.replaceChildren(...names.map(createVariable));
    const none = find("[data-no-variables]", list.parentElement);
    if (none) none.hidden = names.length > 0;
  }

  function createVariable(name) {
    const item = document.createElement("li");
    const code = document.createElement("code");
    code.textContent = `{{${name}}}`;
    item.append(code);
    return item;
  }

  listen("input", (event) => event.target.matches?.("input, textarea") && listVariables(event.target));
  onAdded("[data-variables-of]", (list) => listVariables(document.getElementById(list.dataset.variablesOf)));

  // --- JSON: front/editor.js checks a field and sends the event

  listen("json-checked", (event) => {
    const field = event.target;
    const error = find(`[data-error-of="${CSS.escape(field.id)}"]`);
    if (!error || (!event.detail.message && !("live" in error.dataset))) return;
    error.toggleAttribute("data-live", Boolean(event.detail.message));
    error.hidden = !event.detail.message;
    error.textContent = event.detail.message;
    linkErrors();
    if (field.form) showSummary(field.form);
  });

  // --- model names: those of the chosen provider, or all for a provider without a list

  let modelNames = null;

  function filterModelNames() {
    const [list, provider] = [find("#model-names"), find("#id_provider")];
    if (!list || !provider) return;
    modelNames ??= [...list.options];
    const matches = modelNames.filter((option) => option.dataset.provider === provider.value.trim());
    list.replaceChildren(...(matches.length ? matches : modelNames));
  }

  listen("input", (event) => event.target.id === "id_provider" && filterModelNames());
  filterModelNames();
})();
