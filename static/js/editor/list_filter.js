// A search that leaves only the items of a list that contain each of its words. Without scripts the whole list is shown.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, formatCount } = agentcms;

  onAdded("[data-filter]", (field) => (field.closest("[data-filter-field]").hidden = false));

  listen("input", (event) => {
    if (event.target.matches("[data-filter]")) filter(event.target);
  });

  listen("keydown", (event) => {
    if (!event.target.matches("[data-filter]")) return;
    if (event.key === "Enter") event.preventDefault(); // it would submit the form
    if (event.key !== "Escape" || !event.target.value) return;
    event.preventDefault();
    event.target.value = "";
    filter(event.target);
  });

  function filter(field) {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const list = document.getElementById(field.dataset.filter);
    const items = findAll("[data-filter-item]", list);
    items.forEach((item) => (item.hidden = !words.every((word) => item.dataset.filterItem.includes(word))));
    findAll("[data-filter-group]", list).forEach((group) => showMatches(group, words.length > 0));
    const count = items.filter((item) => !item.hidden).length;
    const status = find("[data-filter-status]", field.closest("[data-filter-field]"));
    status.textContent = words.length ? `${formatCount(count, "tool")} found` : "";
  }

  // A group opens while it has matches. Afterwards it is as it was.
  function showMatches(group, isFiltered) {
    const hasMatches = findAll("[data-filter-item]", group).some((item) => !item.hidden);
    group.hidden = isFiltered && !hasMatches;
    if (isFiltered) {
      group.dataset.wasOpen ??= group.open;
      group.open = hasMatches;
    } else if (group.dataset.wasOpen) {
      group.open = group.dataset.wasOpen === "true";
      delete group.dataset.wasOpen;
    }
  }
})();
