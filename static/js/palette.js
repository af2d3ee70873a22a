// The command palette: Mod+K, or an element with data-opens-palette, opens it. The server finds the options.

(() => {
  "use strict";

  const { find, findAll, listen, openDialog, isMac } = agentcms;
  const palette = find("[data-palette]");
  if (!palette) return;
  const form = find("form", palette);
  const field = find("[role=combobox]", palette);
  const list = find("#palette-options");

  listen("keydown", (event) => {
    const modifier = isMac ? event.metaKey : event.ctrlKey;
    if (!modifier || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    if (palette.open) palette.close();
    else if (!find("dialog[open]")) open();
  });

  listen("click", (event) => {
    const opener = event.target.closest("[data-opens-palette]");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(opener);
  });

  let isSearching = false; // the options are not those of the typed text yet
  let opensWhenFound = false; // Enter was pressed meanwhile

  function open(opener) {
    const path = location.pathname.match(/^\/agents\/([^/]+)/);
    find("[data-palette-agent]", palette).value = path ? decodeURIComponent(path[1]) : "";
    field.value = "";
    openDialog(palette, opener);
    field.focus();
    isSearching = true;
    opensWhenFound = false;
    htmx.process(form); // htmx starts with a timer, so a quick key can come before it knows the form
    form.dispatchEvent(new Event("palette-opened"));
  }

  // --- the options: the focus stays in the field, which names the current option

  const options = () => findAll("a[role=option]", list);
  const current = () => find("[aria-selected=true]", list);

  function select(option) {
    current()?.setAttribute("aria-selected", "false");
    if (option) {
      option.setAttribute("aria-selected", "true");
      option.scrollIntoView({ block: "nearest" });
      field.setAttribute("aria-activedescendant", option.id);
    } else field.removeAttribute("aria-activedescendant");
  }

  field.addEventListener("input", () => {
    isSearching = true;
    opensWhenFound = false;
  });

  addEventListener("htmx:after:swap", (event) => {
    const { ctx } = event.detail;
    if (!palette.open || ctx?.target !== list) return;
    const query = new URL(ctx.request.action, location).searchParams.get("q");
    if (query !== field.value) return; // somebody typed on since this request
    isSearching = false;
    select(options()[0]);
    if (opensWhenFound) current()?.click();
  });

  // A click on the backdrop closes the palette, whatever was typed.
  palette.addEventListener("pointerdown", (event) => event.target === palette && palette.close());

  field.addEventListener("keydown", (event) => {
    const all = options();
    const place = all.indexOf(current());
    const target = {
      ArrowDown: all[(place + 1) % all.length],
      ArrowUp: all.at(place <= 0 ? -1 : place - 1),
      PageDown: all[Math.min(place + 8, all.length - 1)],
      PageUp: all[Math.max(place - 8, 0)],
    }[event.key];
    if (target) {
      event.preventDefault();
      select(target);
    }
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (isSearching) opensWhenFound = true;
    else current()?.click();
  });

  listen("pointermove", (event) => {
    const option = event.target.closest?.("#palette-options a[role=option]");
    if (option && option !== current()) select(option);
  });
})();
