// Rows of a form: pickers, whose search adds rows in order, and the members of an object.

(() => {
  "use strict";

  const { find, findAll, listen, onAdded } = agentcms;
  const ROW_PLACEHOLDER = /__row__/g; // in the names of a new row, as in agents_app/forms/processors_field.py

  let newRows = 0;

  const listOf = (element) => element.closest("[data-rows]");
  const rowsOf = (list) => findAll(":scope > [data-row]", list);
  const pickerOf = (element) => element.closest("[data-picker]");
  const hasKey = (picker, key) => findAll("[data-row]", picker).some((row) => row.dataset.key === key);

  // --- what a change of the rows means for the page

  function update(container) {
    const rows = findAll("[data-row]", container);
    findAll("[data-rows]", container).forEach(disableEnds);
    findAll(`[data-count-of="${CSS.escape(container.id)}"]`).forEach((badge) => {
      badge.textContent = rows.filter((row) => find("input:checked", row)).length || "";
    });
    findAll("[data-option]", container).forEach((option) => markChosen(container, option));
  }

  function disableEnds(list) {
    const rows = rowsOf(list);
    rows.forEach((row, index) => {
      const [up, down] = [find("[data-move=up]", row), find("[data-move=down]", row)];
      up?.setAttribute("aria-disabled", index === 0);
      down?.setAttribute("aria-disabled", index === rows.length - 1);
    });
  }

  function markChosen(picker, option) {
    const isProcessor = find("template", option.parentElement)?.innerHTML.includes("__row__");
    const isChosen = !isProcessor && hasKey(picker, option.dataset.option);
    option.disabled = isChosen;
    option.toggleAttribute("data-chosen", isChosen);
  }

  function changed(container, message) {
    const picker = pickerOf(container) || container;
    update(picker);
    const status = find("[data-announce]", picker);
    if (status) status.textContent = message;
    container.dispatchEvent(new Event("change", { bubbles: true }));
  }

  onAdded("[data-picker]", update);
  addEventListener("htmx:after:swap", (event) => {
    const picker = event.target instanceof Element && pickerOf(event.target);
    if (picker) update(picker);
    else findAll("[data-picker]").forEach(update);
  });

  // --- moving and removing

  listen("click", (event) => {
    const button = event.target.closest("[data-move], [data-remove]");
    const row = button?.closest("[data-row]");
    if (!row || button.getAttribute("aria-disabled") === "true") return;
    if (button.matches("[data-move]")) move(row, button);
    else remove(row);
  });

  function move(row, button) {
    const list = listOf(row);
    const isUp = button.dataset.move === "up";
    if (isUp) row.previousElementSibling?.before(row);
    else row.nextElementSibling?.after(row);
    changed(list, `Moved to position ${rowsOf(list).indexOf(row) + 1}.`);
    button.focus();
  }

  function remove(row) {
    const list = listOf(row);
    const container = row.closest("[data-picker], [data-structured]") || list;
    const next = row.nextElementSibling || row.previousElementSibling;
    row.remove();
    changed(list, "Removed.");
    (find("[data-remove]", next || document.createElement("li")) || find("summary, [data-add-row]", container))?.focus();
  }

  // --- a single choice that is not registered: keep it, or choose nothing

  listen("click", (event) => {
    const button = event.target.closest("[data-keep], [data-clear]");
    const row = button?.closest("[data-missing]");
    if (!row) return;
    const field = find("select", row.closest("[data-choice]"));
    if (button.matches("[data-clear]")) field.value = "";
    row.hidden = true;
    field.dispatchEvent(new Event("change", { bubbles: true }));
    field.focus();
  });

  // --- adding a member of an object

  listen("click", (event) => {
    const button = event.target.closest("[data-add-row]");
    if (!button) return;
    const container = button.parentElement.parentElement;
    const list = find("[data-rows]", container);
    list.append(find("template[data-row-template]", container).content.cloneNode(true));
    changed(list, "Added.");
    find("input", list.lastElementChild).focus();
  });

  // --- adding what the search of a picker found

  // The focus moves within the click: a toggle event comes later, and keys typed before it would be lost.
  listen("click", (event) => {
    const details = event.target.closest("[data-add] > summary")?.parentElement;
    if (!details) return;
    event.preventDefault();
    details.open = !details.open;
    if (!details.open) return;
    const search = find("[data-add-search]", details);
    search.focus();
    search.dispatchEvent(new Event("search-opened"));
  });

  listen("click", (event) => {
    const option = event.target.closest("[data-option]");
    if (option && !option.disabled) add(option);
  });

  function add(option) {
    const picker = pickerOf(option);
    const list = find("[data-rows]", picker);
    const row = find("template", option.parentElement).content.firstElementChild.cloneNode(true);
    newRows += 1;
    nameRow(row, `n${Date.now().toString(36)}${newRows}`);
    list.append(row);
    htmx.process(row);
    const title = find(".picker-title", option).textContent;
    changed(list, `Added ${title}.`);
    const search = find("[data-add-search]", picker);
    search.focus();
    search.select();
  }

  function nameRow(row, name) {
    for (const element of findAll("*", row)) {
      for (const attribute of ["name", "id", "for", "value", "aria-describedby"]) {
        const value = element.getAttribute(attribute);
        if (value?.includes("__row__")) element.setAttribute(attribute, value.replace(ROW_PLACEHOLDER, name));
      }
    }
  }

  // --- keys: down and up move between the search and its results, Enter adds the first one, Escape closes

  listen("keydown", (event) => {
    const details = event.target.closest?.("[data-add]");
    if (!details?.open) return;
    const search = find("[data-add-search]", details);
    const stops = [search, ...findAll("[data-option]:not(:disabled)", details)];
    if (event.key === "Escape") close(event, details);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event, stops);
    else if (event.key === "Enter" && event.target === search) {
      event.preventDefault(); // it would submit the form
      if (hasResults(details)) stops[1]?.click();
      else search.dataset.addsFirst = "";
    }
  });

  const hasResults = (details) =>
    find(".picker-options", details).dataset.query === find("[data-add-search]", details).value;

  // Enter before the results of the last words have arrived.
  addEventListener("htmx:after:swap", () => {
    findAll("[data-adds-first]").forEach((search) => {
      const details = search.closest("[data-add]");
      if (!hasResults(details)) return;
      delete search.dataset.addsFirst;
      find("[data-option]:not(:disabled)", details)?.click();
    });
  });

  // Whoever types on has not chosen yet.
  listen("input", ({ target }) => target.matches("[data-adds-first]") && target.removeAttribute("data-adds-first"));

  function step(event, stops) {
    const next = stops[stops.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  function close(event, details) {
    event.preventDefault();
    details.open = false;
    find("[data-add-search]", details).removeAttribute("data-adds-first");
    find("summary", details).focus();
  }

  listen("click", (event) => {
    findAll("[data-add][open]").forEach((details) => {
      if (!details.contains(event.target) && event.target.isConnected) details.open = false;
    });
  });

  listen("change", (event) => {
    const picker = event.target.matches?.("input[type=checkbox]") && pickerOf(event.target);
    if (picker) update(picker);
  });

  Object.assign(agentcms, { updateRows: () => findAll("[data-picker]").forEach(update) });
})();
