// Tables with a box in each row: select all, select a range with Shift, count the selected rows, and keep the selection
// when the question about them is cancelled.

(() => {
  "use strict";

  const { find, findAll, listen } = agentcms;
  const ROW_BOX = "tbody .select input[type=checkbox]";

  let lastBox = null;

  listen("click", (event) => {
    const box = event.target;
    if (!box.matches?.(ROW_BOX)) return;
    const table = box.closest("table");
    if (event.shiftKey) copyToRange(findAll(ROW_BOX, table), lastBox, box);
    lastBox = box;
    updateCount(table);
  });

  function copyToRange(boxes, first, last) {
    if (!boxes.includes(first)) return;
    const [from, to] = [boxes.indexOf(first), boxes.indexOf(last)].sort((a, b) => a - b);
    boxes.slice(from, to + 1).forEach((box) => (box.checked = last.checked));
  }

  listen("change", (event) => {
    const all = event.target;
    if (!all.matches?.("[data-select-all]")) return;
    const table = all.closest("table");
    findAll(ROW_BOX, table).forEach((box) => (box.checked = all.checked));
    updateCount(table);
  });

  // After going back, the browser selects the rows again, without an event.
  addEventListener("pageshow", () => findAll(`${ROW_BOX}:checked`).forEach((box) => updateCount(box.closest("table"))));

  // Going back selects them again; the address of the list would not.
  listen("click", (event) => {
    const link = event.target.closest?.("a[data-back]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || link.pathname !== pathOfReferrer()) return;
    event.preventDefault();
    history.back();
  });

  function pathOfReferrer() {
    return document.referrer && new URL(document.referrer).pathname;
  }

  function updateCount(table) {
    const boxes = findAll(ROW_BOX, table);
    const selected = boxes.filter((box) => box.checked).length;
    const all = find("[data-select-all]", table);
    if (all) {
      all.checked = selected > 0 && selected === boxes.length;
      all.indeterminate = selected > 0 && selected < boxes.length;
    }
    const places = findAll("[data-selected-count]", table.closest("form") || document);
    places.forEach((place) => (place.textContent = `${selected} selected`));
  }
})();
