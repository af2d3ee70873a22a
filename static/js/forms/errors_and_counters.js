// Form fields: character counters, and errors: linked to their fields, listed beside the button, and focused.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, formatNumber, formatCount } = agentcms;
  const CHARACTERS_PER_TOKEN = 4;

  // The inputs for a page without scripts: where htmx adds them, they would be sent with the form.
  onAdded("noscript", (element) => element.remove());

  // --- counters

  // Count code points, as Python does.
  function countCharacters(text) {
    let pairs = 0;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code >= 0xd800 && code <= 0xdbff) pairs++;
    }
    return text.length - pairs;
  }

  function updateCounter(field) {
    const counter = field.id && find(`[data-counter-for="${CSS.escape(field.id)}"]`);
    if (!counter) return;
    const characters = countCharacters(field.value);
    const limit = Number(counter.dataset.limit) || 0;
    const parts = [limit ? `${formatNumber(characters)} / ${formatNumber(limit)}` : formatCount(characters, "character")];
    let isOver = limit > 0 && characters > limit;
    if ("tokens" in counter.dataset) {
      const tokens = Math.ceil(characters / CHARACTERS_PER_TOKEN);
      parts.push(`about ${formatCount(tokens, "token")} (estimate)`);
      const tokenLimit = Number(find("[data-token-limit]")?.dataset.tokenLimit) || 0;
      isOver ||= tokenLimit > 0 && tokens > tokenLimit;
    }
    counter.textContent = parts.join(" · ");
    counter.closest(".counter").toggleAttribute("data-over", isOver);
  }

  listen("input", (event) => event.target.matches?.("input, textarea") && updateCounter(event.target));
  onAdded("[data-counter-for]", (counter) => {
    const field = document.getElementById(counter.dataset.counterFor);
    if (field) updateCounter(field);
  });

  // The limit of the model arrives after the page, and with another model.
  addEventListener("htmx:after:swap", () => {
    const field = find("[data-token-limit]") && document.getElementById(find("[data-tokens]")?.dataset.counterFor);
    if (field) updateCounter(field);
  });

  // --- errors: a response replaces the error messages alone, not the fields, so that typed text is not lost

  function linkErrors() {
    findAll("[data-error-of]").forEach((error) => {
      const field = document.getElementById(error.dataset.errorOf);
      const visibleField = document.getElementById(`${error.dataset.errorOf}_editor`) || field;
      if (visibleField && !field?.matches("fieldset, [data-inputs]")) describe(visibleField, error.id, !error.hidden);
      const group = field?.closest("[data-structured], fieldset.field, [data-inputs]");
      if (group) showRowErrors(error, group);
    });
  }

  // The error of an input stands below it, or below its row. One whose input is gone stays in the list of the field.
  function showRowErrors(error, group) {
    findAll("[data-row-error]", group).forEach((message) => {
      findAll(`[aria-describedby~="${CSS.escape(message.id)}"]`, group).forEach((input) => describe(input, message.id, false));
      message.remove();
    });
    findAll("[data-target]", error).forEach((item, index) => {
      const input = findTarget(item.dataset.target, group);
      item.hidden = Boolean(input);
      if (input) showRowError(input, item.textContent, `${error.id}_${index}`);
    });
  }

  // A target is the name of an input, a colon, and its position among the rows with a name, as the server counts them.
  function findTarget(target, group) {
    const end = target.lastIndexOf(":");
    const inputs = findAll(`[name="${CSS.escape(target.slice(0, end))}"]`, group);
    const isRow = /-row-[a-z]+$/.test(target.slice(0, end));
    const counted = isRow ? inputs.filter((input) => find("[name$='-row-name']", input.closest("[data-row]"))?.value) : inputs;
    return counted[Number(target.slice(end + 1))];
  }

  function showRowError(input, text, id) {
    const message = document.createElement("p");
    message.className = "field-error row-error";
    message.id = id;
    message.dataset.rowError = "";
    message.textContent = text;
    (input.closest(".field:not(.structured), .variant-condition, [data-row]") ?? input.parentElement).append(message);
    describe(input, id, true);
  }

  // Mark a field as invalid, with the error that describes it, or as valid. Its other descriptions stay.
  function describe(field, id, isInvalid) {
    const descriptions = new Set((field.getAttribute("aria-describedby") || "").split(" ").filter(Boolean));
    if (isInvalid) {
      field.setAttribute("aria-invalid", "true");
      descriptions.add(id);
    } else {
      field.removeAttribute("aria-invalid");
      descriptions.delete(id);
    }
    if (descriptions.size) field.setAttribute("aria-describedby", [...descriptions].join(" "));
    else field.removeAttribute("aria-describedby");
  }

  // --- the errors of a form beside its button, with a link to each field

  const errorsOf = (form) => findAll("[data-error-of]:not([hidden])", form);

  // The text of a label alone, without the "optional" in an element inside it.
  function labelOf(id) {
    const error = find(`[data-error-of="${CSS.escape(id)}"]`);
    const group = document.getElementById(id)?.closest("fieldset");
    const label =
      find(`label[for="${CSS.escape(id)}"]`) ||
      document.getElementById(id)?.closest("label") ||
      (group && find("legend", group)) ||
      find("h2", error.closest("section, .section, dialog") ?? document);
    const texts = [...(label?.childNodes ?? [])].filter((node) => node.nodeType === Node.TEXT_NODE);
    return texts.map((node) => node.data.trim()).join(" ").trim() || label?.textContent.trim() || "This form";
  }

  function showSummary(form) {
    const errors = [...new Map(errorsOf(form).map((error) => [error.dataset.errorOf, error])).values()];
    const place = findSummary(form, errors.length > 0);
    if (!place) return;
    const links = errors.map((error, index) => [index ? ", " : "", createLink(error.dataset.errorOf)]).flat();
    place.replaceChildren(...(errors.length ? [errors.length === 1 ? "1 error: " : `${errors.length} errors: `, ...links] : []));
  }

  function findSummary(form, isNeeded) {
    const id = form.getAttribute("id"); // form.id would be a field of the name "id"
    const place = id && find(`[data-reason-of="${CSS.escape(id)}"]`);
    const own = place || find(":scope [data-reason-of='']", form);
    if (own || !isNeeded) return own;
    const button = [...form.elements].find((element) => element.type === "submit");
    if (!button) return null;
    const summary = document.createElement("p");
    summary.className = "reason";
    summary.dataset.reasonOf = "";
    summary.setAttribute("role", "status");
    button.before(summary);
    return summary;
  }

  function createLink(id) {
    const link = document.createElement("a");
    link.href = `#${id}`;
    link.dataset.errorLink = id;
    link.textContent = labelOf(id);
    return link;
  }

  const showSummaries = () => findAll("form").forEach(showSummary);

  // --- going to a field with an error

  function goToError(id) {
    const error = find(`[data-error-of="${CSS.escape(id)}"]`);
    const field = document.getElementById(id) || error;
    const target = focusable(field, error);
    openAround(error);
    openAround(target);
    const editor = window.AgentEditor?.of(field);
    const [, line, column] = error?.textContent.match(/line (\d+), column (\d+)/i) ?? [];
    if (editor && line) editor.goTo(Number(line), Number(column));
    else if (editor) editor.focus();
    else target?.focus({ preventScroll: true });
    (editor ? error : field.matches("[data-inputs]") ? target : field).scrollIntoView({ block: "center" });
  }

  function openAround(element) {
    for (let details = element?.closest("details:not([open])"); details; details = details.parentElement.closest("details:not([open])")) {
      details.open = true;
    }
  }

  // A group of inputs has the focus itself if it can, so that its name and its error are read.
  function focusable(field, error) {
    const invalid = find("[aria-invalid=true]", field);
    if (invalid) return invalid;
    const inputs = "input:not([type=hidden]), select, textarea, button, [tabindex]";
    if (field.matches(inputs)) return field;
    return find(inputs, error?.closest(".field, .section-body") || field) || field;
  }

  function goToFirstError(root) {
    const [first] = findAll("[data-error-of]:not([hidden])", root);
    if (first) goToError(first.dataset.errorOf);
  }

  listen("click", (event) => {
    const link = event.target.closest("[data-error-link]");
    if (!link) return;
    event.preventDefault();
    goToError(link.dataset.errorLink);
  });

  const INVALID_STATUSES = [400, 422];
  listen("htmx:finally:request", ({ detail: { ctx } }) => {
    if (!INVALID_STATUSES.includes(ctx.response?.status)) return;
    const source = ctx.sourceElement;
    const form = source?.form || source?.closest?.("form") || (source?.isConnected ? null : find("dialog[open]"));
    goToFirstError(form || find("dialog[open]") || document);
  });

  function update() {
    linkErrors();
    showSummaries();
  }

  addEventListener("htmx:after:swap", update);
  update();
  // A page that the server rendered with errors. The editors over the fields must be ready first.
  addEventListener("load", () => goToFirstError(document), { once: true });

  Object.assign(agentcms, { updateCounter, linkErrors, showSummary });
})();
