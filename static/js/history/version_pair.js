// The history: choose two versions to compare. A third choice replaces the oldest one.

(() => {
  "use strict";

  const { findAll, listen, onAdded } = agentcms;

  let lastBox = null;

  listen("change", (event) => {
    const box = event.target;
    if (!box.matches?.("[data-pair]")) return;
    const selected = findAll("[data-pair]:checked");
    if (box.checked && selected.length > 2) {
      selected.filter((other) => other !== box && other !== lastBox).forEach((other) => (other.checked = false));
    }
    if (box.checked) lastBox = box;
    findAll("[data-pair-button]").forEach(updateButton);
  });

  const updateButton = (button) => (button.disabled = findAll("[data-pair]:checked").length !== 2);
  onAdded("[data-pair-button]", updateButton);
})();
