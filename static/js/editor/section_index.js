// The list of sections beside the form: mark the section that is in view, and count what is selected, also in groups.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded } = agentcms;
  const BAND_IN_VIEW = "-20% 0px -70% 0px"; // a section is in view when it crosses this band of the window

  const observer = new IntersectionObserver(
    (entries) => {
      const visible = entries.find((entry) => entry.isIntersecting);
      if (visible) markCurrent(visible.target.id);
    },
    { rootMargin: BAND_IN_VIEW },
  );

  function markCurrent(id) {
    findAll(".section-index a").forEach((link) => {
      if (link.hash === `#${id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }

  onAdded(".section-index a", (link) => {
    const section = link.hash && find(`#${CSS.escape(link.hash.slice(1))}`);
    if (section) observer.observe(section);
  });

  // Pickers count their rows themselves. These sections have boxes of one name.
  function countChecked(badge) {
    const name = CSS.escape(badge.dataset.countChecked);
    badge.textContent = findAll(`input[name="${name}"]:checked`).length || "";
  }

  // The heading of a group begins with how many of its boxes are checked.
  function countInGroup(heading) {
    const name = CSS.escape(heading.dataset.countInGroup);
    const count = findAll(`input[name="${name}"]:checked`, heading.closest("details")).length;
    heading.textContent = heading.textContent.replace(/^\d+/, count);
  }

  onAdded("[data-count-checked]", countChecked);
  listen("change", () => {
    findAll("[data-count-checked]").forEach(countChecked);
    findAll("[data-count-in-group]").forEach(countInGroup);
  });
})();
