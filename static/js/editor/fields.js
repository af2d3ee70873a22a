// Fields of the editor: variables of the instructions and their preview, errors in JSON, and names of models.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, linkErrors, showSummary } = agentcms;

  // --- variables: {{name}}, {{path.to.value}} and {{name || 'default'}}, as in agents_app/configuration/variables.py

  const VARIABLE = /\{\{\s*([\w-]+(?:\.[\w-]+)*)\s*(?:\|\|\s*('[^']*'|"[^"]*")\s*)?\}\}/g;
  const DECLARED = "[name=request_context_schema-row-name]";
  const panel = () => find("[data-preview-panel]");

  // Return the default of each variable by name: "" without one. Declared variables come first.
  function findVariables(field) {
    const variables = new Map();
    for (const input of findAll(DECLARED, field.form || document)) {
      const value = find("[name=request_context_schema-row-default]", input.closest("[data-row]"))?.value;
      if (input.value) variables.set(input.value, value || "");
    }
    for (const [, name, text] of field.value.matchAll(VARIABLE)) {
      if (variables.has(name.split(".")[0]) && !variables.has(name)) continue;
      variables.set(name, variables.get(name) || text?.slice(1, -1) || "");
    }
    return variables;
  }

  function listVariables(field) {
    const list = field?.id && find(`[data-variables-of="${CSS.escape(field.id)}"]`);
    if (!list) return;
    const variables = findVariables(field);
    list.replaceChildren(...[...variables].map(([name, value]) => createVariable(name, value)));
    const none = find("[data-no-variables]", list.parentElement);
    if (none) none.hidden = variables.size > 0;
    showPreview(field, variables);
  }

  function createVariable(name, value) {
    const item = document.createElement("li");
    const code = document.createElement("code");
    code.textContent = name;
    item.append(code);
    if (value) {
      const note = document.createElement("span");
      note.className = "quiet";
      note.textContent = ` default: ${value}`;
      item.append(note);
    }
    return item;
  }

  const instructions = () => document.getElementById(find("[data-variables-of]")?.dataset.variablesOf);

  listen("input", (event) => {
    if (event.target.matches?.("textarea[data-editor=text]")) listVariables(event.target);
    else if (event.target.closest?.(".variable-row")) listVariables(instructions());
  });
  listen("change", (event) => event.target.closest?.(".declared-variables") && listVariables(instructions()));
  onAdded("[data-variables-of]", (list) => listVariables(document.getElementById(list.dataset.variablesOf)));

  // --- preview: the text with values that are typed here and stored nowhere

  function showPreview(field, variables) {
    if (!panel() || panel().hidden) return;
    const place = find("[data-preview-values]", panel());
    const typed = new Map(findAll("input", place).map((input) => [input.dataset.variable, input.value]));
    place.replaceChildren(...[...variables].map(([name, value]) => createValueField(name, typed.get(name) ?? value)));
    fillPreview(field);
  }

  function createValueField(name, value) {
    const label = document.createElement("label");
    label.className = "field";
    const input = document.createElement("input");
    input.className = "input";
    Object.assign(input.dataset, { variable: name, notSaved: "" });
    input.value = value;
    label.append(name, input);
    return label;
  }

  function fillPreview(field) {
    const values = new Map(findAll("[data-variable]", panel()).map((input) => [input.dataset.variable, input.value]));
    const text = field.value.replace(VARIABLE, (place, name, fallback) => values.get(name) || fallback?.slice(1, -1) || place);
    find("[data-preview-text]", panel()).textContent = text;
  }

  listen("input", (event) => event.target.matches?.("[data-variable]") && fillPreview(instructions()));
  listen("click", (event) => {
    const button = event.target.closest("[data-preview]");
    if (!button) return;
    panel().hidden = !panel().hidden;
    button.setAttribute("aria-expanded", !panel().hidden);
    const field = document.getElementById(button.dataset.preview);
    showPreview(field, findVariables(field));
    if (!panel().hidden) panel().scrollIntoView({ block: "nearest" });
  });

  // --- expand: the editor fills the window. The rest of the page cannot be reached meanwhile.

  let outside = [];

  function expand(button, isExpanded) {
    const section = button.closest("[data-expandable]");
    section.toggleAttribute("data-expanded", isExpanded);
    button.setAttribute("aria-pressed", isExpanded);
    button.textContent = isExpanded ? "Collapse" : "Expand";
    outside.forEach((element) => (element.inert = false));
    outside = isExpanded ? siblingsOfParents(section) : [];
    outside.forEach((element) => (element.inert = true));
    window.AgentEditor?.of(document.getElementById(button.dataset.expand))?.view.requestMeasure();
    button.focus();
  }

  function siblingsOfParents(section) {
    const elements = [];
    for (let element = section; element !== document.body; element = element.parentElement) {
      const siblings = [...element.parentElement.children].filter((other) => other !== element);
      elements.push(...siblings.filter((other) => !other.inert && !other.matches(".toasts, #dialogs, dialog, script")));
    }
    return elements;
  }

  listen("click", (event) => {
    const button = event.target.closest("[data-expand]");
    if (button) expand(button, button.getAttribute("aria-pressed") !== "true");
  });
  listen("keydown", (event) => {
    const button = event.key === "Escape" && !event.defaultPrevented && find("[data-expanded] [data-expand]");
    if (button && !find("dialog[open]")) expand(button, false);
  });

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
