// Sections that can be closed: open those with content or errors, and say which are empty.

(() => {
  "use strict";

  const { find, findAll, listen } = agentcms;
  const SECTION = "details.field-section";

  const isFilled = (section) => findAll("input, textarea, select", section).some(hasContent);

  function hasContent(field) {
    if (field.type === "hidden" || field.matches("[data-not-saved]") || !field.name) return false;
    if (["checkbox", "radio"].includes(field.type)) return field.checked;
    return !/^(\[\s*\]|\{\s*\}|null)?$/.test(field.value.trim());
  }

  function openFilled(form) {
    findAll(SECTION, form).filter(isFilled).forEach((section) => (section.open = true));
  }

  // Recovery fills the fields, and sends one event for the whole form.
  listen("change", (event) => event.target.matches?.("form") && openFilled(event.target));

  // "toggle" does not bubble.
  listen(
    "toggle",
    (event) => {
      const section = event.target;
      if (!section.matches?.(SECTION)) return;
      if (section.open) return;
      section.classList.toggle("section-unset", !isFilled(section));
    },
    { capture: true },
  );

  // A response may add errors to fields in closed sections.
  addEventListener("htmx:after:swap", () => {
    findAll(`${SECTION}:not([open]) .field-error:not([hidden])`).forEach((error) => (error.closest(SECTION).open = true));
  });

  // A link to a section opens it.
  function openTarget(hash) {
    const target = hash.length > 1 && find(`#${CSS.escape(hash.slice(1))}`);
    const section = target && target.closest(SECTION);
    if (section) section.open = true;
  }
  listen("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link) openTarget(link.hash);
  });
  openTarget(location.hash);
})();
