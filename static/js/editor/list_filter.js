// A search that leaves only the items of a list that contain each of its words. Without scripts all items are shown.
// If the page has no room for the whole list, the field also requests the items that match.

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
    event.target.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // The server shows what is selected too, as the form has to send it.
  addEventListener("htmx:after:swap", () => findAll("[data-filter]").filter((field) => field.value).forEach(filter));

  function filter(field) {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const list = document.getElementById(field.dataset.filter);
    const items = findAll("[data-filter-item]", list);
    items.forEach((item) => (item.hidden = !words.every((word) => item.dataset.filterItem.includes(word))));
    findAll("[data-filter-group]", list).forEach((group) => showMatches(group, words.length > 0));
    const count = items.filter((item) => !item.hidden).length + Number(find("[data-filter-more]", list)?.dataset.filterMore || 0);
    const status = find("[data-filter-status]", field.closest("[data-filter-field]"));
    status.textContent = words.length ? `${formatCount(count, field.dataset.noun)} found` : "";
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
