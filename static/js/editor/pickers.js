// Pickers: filter the options by text, count the selected ones, and remove keys that are not registered.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded } = agentcms;

  function filterOptions(picker) {
    const words = find("[data-picker-search]", picker).value.toLowerCase().split(/\s+/).filter(Boolean);
    const options = findAll("[data-picker-option]", picker);
    options.forEach((option) => {
      const text = option.textContent.toLowerCase();
      option.hidden = !words.every((word) => text.includes(word));
    });
    find("[data-picker-no-match]", picker).hidden = !words.length || options.some((option) => !option.hidden);
  }

  function updateCount(picker) {
    const selected = findAll("input[type=checkbox]:checked", picker).length;
    const total = findAll("[data-picker-option]", picker).length;
    const place = find("[data-picker-count]", picker);
    if (place) place.textContent = `${selected} of ${total} selected`;
    findAll(`[data-count-of="${CSS.escape(picker.id)}"]`).forEach((badge) => (badge.textContent = selected || ""));
  }

  onAdded("[data-picker]", updateCount);

  listen("input", (event) => {
    if (event.target.matches("[data-picker-search]")) filterOptions(event.target.closest("[data-picker]"));
  });

  listen("keydown", (event) => {
    const search = event.target;
    if (!search.matches("[data-picker-search]")) return;
    const picker = search.closest("[data-picker]");
    if (event.key === "Enter") event.preventDefault(); // it would submit the form
    if (event.key === "Escape" && search.value) {
      event.preventDefault();
      search.value = "";
      filterOptions(picker);
    }
    if (event.key === "ArrowDown") {
      event.preventDefault();
      find("[data-picker-option]:not([hidden]) input", picker)?.focus();
    }
  });

  listen("change", (event) => {
    const picker = event.target.closest?.("[data-picker]");
    if (picker) updateCount(picker);
    // Recovery sends one event for the whole form.
    else if (event.target.matches?.("form")) findAll("[data-picker]", event.target).forEach(updateCount);
  });

  listen("click", (event) => {
    const button = event.target.closest("[data-remove-missing]");
    if (!button) return;
    const entry = button.closest("[data-missing]");
    const box = find("input", entry);
    box.checked = false;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    entry.hidden = true;
    find("[data-picker-search]", button.closest("[data-picker]"))?.focus();
  });
})();
