// Stepping through the changes of a comparison, with buttons or with n and p: "3 of 9".

(() => {
  "use strict";

  const { find, findAll, listen, onAdded, isPlainKey, formatCount } = agentcms;

  // A dialog over the page has its own changes.
  const visibleChanges = () =>
    findAll("[data-change]", find("dialog[open]") || document).filter((change) => change.checkVisibility());

  // direction: 1 for the next change, -1 for the previous one. The first follows the last.
  function step(direction) {
    const changes = visibleChanges();
    if (!changes.length) return;
    const current = changes.findIndex((change) => change.hasAttribute("data-current"));
    const start = current < 0 && direction < 0 ? changes.length : current;
    const next = (start + direction + changes.length) % changes.length;
    changes[current]?.removeAttribute("data-current");
    changes[next].setAttribute("data-current", "");
    changes[next].scrollIntoView({ block: "center" });
    changes[next].focus({ preventScroll: true });
    findAll("[data-change-position]").forEach((place) => (place.textContent = `${next + 1} of ${changes.length}`));
  }

  listen("click", (event) => {
    const button = event.target.closest("[data-step]");
    if (button) step(Number(button.dataset.step));
  });

  listen("keydown", (event) => {
    if (!isPlainKey(event)) return;
    if (event.key === "n") step(1);
    else if (event.key === "p") step(-1);
  });

  onAdded("[data-change-position]", (place) => (place.textContent = formatCount(visibleChanges().length, "change")));
})();
