// Keyboard shortcuts of every page. components/_keyboard_shortcuts.html lists them.

(() => {
  "use strict";

  const { find, listen, onAdded, openDialog, isMac } = agentcms;
  const EDITABLE = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable='true']";

  // Whoever speaks to the computer, or touches keys by accident, switches single keys off in the dialog of the shortcuts.
  const SETTING = "agentcms:single-keys";
  let areKeysOff = false;
  try {
    areKeysOff = localStorage.getItem(SETTING) === "off";
  } catch {
    // Storage is blocked. The choice lasts as long as the page.
  }

  // Return true if a key without a modifier may be a shortcut in a dialog too: nobody is typing.
  function isPlainKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || areKeysOff) return false;
    return !event.target.closest?.(EDITABLE);
  }

  const isPlainShortcut = (event) => isPlainKey(event) && !find("dialog[open]");

  onAdded("[data-single-keys]", (box) => (box.checked = !areKeysOff));
  listen("change", (event) => {
    if (!event.target.matches("[data-single-keys]")) return;
    areKeysOff = !event.target.checked;
    try {
      localStorage.setItem(SETTING, areKeysOff ? "off" : "on");
    } catch {
      // See above.
    }
  });

  listen("keydown", (event) => {
    const modifier = isMac ? event.metaKey : event.ctrlKey;
    if (modifier && !event.altKey && event.key.toLowerCase() === "s") save(event);
    else if (modifier && event.key === "Enter") run(event);
    else if (!isPlainShortcut(event)) return;
    else if (event.key === "?") showShortcuts(event);
    else if (event.key === "/") focusSearch(event);
  });

  // A form with data-save="focused" is one of several on its page: outside of them, the keys mean none.
  function save(event) {
    const focused = document.activeElement?.closest("form[data-save]");
    const form = focused || find("dialog[open] form[data-save]") || find('form[data-save=""]');
    if (!form) return;
    event.preventDefault();
    const button = [...form.elements].find((element) => element.matches("[data-save-default]"));
    if (!button?.disabled) form.requestSubmit(button);
  }

  // In another form, such as that of a decision, the keys would run something that nobody looks at.
  function run(event) {
    const button = find("[data-run]");
    const form = document.activeElement?.closest("form, dialog");
    if (!button || button.disabled || (form && form !== button.form)) return;
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

  Object.assign(agentcms, { isPlainKey, isPlainShortcut });
})();
