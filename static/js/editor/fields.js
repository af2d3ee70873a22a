// Fields of the editor: variables in the instructions, errors in JSON, and model names of the chosen provider.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded } = agentcms;

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

  const invalidFields = new Set();

  listen("json-checked", (event) => {
    const field = event.target;
    invalidFields[event.detail.message ? "add" : "delete"](field);
    const error = document.getElementById(`${field.id}_json_error`) || createError(field);
    error.hidden = !event.detail.message;
    error.textContent = event.detail.message;
    if (field.form) showInvalidFields(field.form);
  });

  function createError(field) {
    const error = document.createElement("p");
    error.id = `${field.id}_json_error`;
    error.className = "field-error";
    error.setAttribute("role", "status");
    field.closest(".field")?.append(error);
    return error;
  }

  // Beside the save button: the fields that cannot be saved.
  function showInvalidFields(form) {
    const labels = [...form.elements].filter((field) => invalidFields.has(field)).map(labelOf);
    const reason = labels.length ? `${labels.join(", ")}: not valid JSON` : "";
    findAll(`[data-reason-of="${CSS.escape(form.id)}"]`).forEach((place) => (place.textContent = reason));
  }

  // The text of the label alone, without the "optional" in an element inside it.
  function labelOf(field) {
    const texts = [...(field.labels?.[0]?.childNodes ?? [])].filter((node) => node.nodeType === Node.TEXT_NODE);
    return texts.map((node) => node.data.trim()).join(" ").trim() || field.name;
  }

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
