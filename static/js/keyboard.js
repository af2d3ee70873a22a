// Keyboard shortcuts of every page. components/_keys.html lists them.

(() => {
  "use strict";

  const { find, listen, onAdded, openDialog, isMac } = agentcms;
  const EDITABLE = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable='true']";

  // Return true if a key without a modifier may be a shortcut: nobody is typing, and no dialog is open.
  function isPlainShortcut(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    return !event.target.closest?.(EDITABLE) && !find("dialog[open]");
  }

  listen("keydown", (event) => {
    const modifier = isMac ? event.metaKey : event.ctrlKey;
    if (modifier && !event.altKey && event.key.toLowerCase() === "s") save(event);
    else if (modifier && event.key === "Enter") run(event);
    else if (!isPlainShortcut(event)) return;
    else if (event.key === "?") showShortcuts(event);
    else if (event.key === "/") focusSearch(event);
  });

  function save(event) {
    const focused = document.activeElement?.closest("form[data-save]");
    const form = focused || find("dialog[open] form[data-save]") || find("form[data-save]");
    if (!form) return;
    event.preventDefault();
    const button = [...form.elements].find((element) => element.matches("[data-save-default]"));
    if (!button?.disabled) form.requestSubmit(button);
  }

  function run(event) {
    const button = find("[data-run]");
    if (!button || button.disabled) return;
    event.preventDefault();
    button.click();
  }

  function showShortcuts(event) {
    event.preventDefault();
    openDialog(find("#keys"));
  }

  function focusSearch(event) {
    const field = find("main [data-search]") || find("[data-search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  }

  if (isMac) onAdded("[data-modifier]", (key) => (key.textContent = "⌘"));

  Object.assign(agentcms, { isPlainShortcut });
})();
