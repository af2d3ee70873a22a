// Form fields: character counters, and error messages that are linked to their fields.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, formatNumber, formatCount } = agentcms;
  const CHARACTERS_PER_TOKEN = 4;

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
    if ("tokens" in counter.dataset) {
      parts.push(`about ${formatCount(Math.ceil(characters / CHARACTERS_PER_TOKEN), "token")} (estimate)`);
    }
    counter.textContent = parts.join(" · ");
    counter.toggleAttribute("data-over", limit > 0 && characters > limit);
  }

  listen("input", (event) => event.target.matches?.("input, textarea") && updateCounter(event.target));
  onAdded("[data-counter-for]", (counter) => {
    const field = document.getElementById(counter.dataset.counterFor);
    if (field) updateCounter(field);
  });

  // --- errors: a response replaces the error messages alone, not the fields, so that typed text is not lost

  function linkErrors() {
    findAll("[data-error-of]").forEach((error) => {
      const field = document.getElementById(error.dataset.errorOf);
      const visibleField = document.getElementById(`${error.dataset.errorOf}_editor`) || field;
      if (visibleField && !field?.matches("fieldset")) linkError(error, visibleField);
    });
  }

  function linkError(error, field) {
    const descriptions = new Set((field.getAttribute("aria-describedby") || "").split(" ").filter(Boolean));
    if (error.hidden) {
      field.removeAttribute("aria-invalid");
      descriptions.delete(error.id);
    } else {
      field.setAttribute("aria-invalid", "true");
      descriptions.add(error.id);
    }
    if (descriptions.size) field.setAttribute("aria-describedby", [...descriptions].join(" "));
    else field.removeAttribute("aria-describedby");
  }

  addEventListener("htmx:after:swap", linkErrors);
  linkErrors();

  Object.assign(agentcms, { updateCounter });
})();
