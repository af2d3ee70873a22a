// Dialogs and menus: opening, closing, and returning the focus to the element that opened them.

(() => {
  "use strict";

  const { find, findAll, listen } = agentcms;

  // --- dialogs

  const openers = new WeakMap();

  function openDialog(dialog, opener = document.activeElement) {
    if (!dialog || dialog.open) return;
    openers.set(dialog, { element: opener, id: opener?.id });
    findAll("details.menu[open]").forEach(closeMenu);
    dialog.showModal();
  }

  const openerOf = (dialog) => openers.get(dialog);

  listen("click", (event) => {
    const button = event.target.closest("[commandfor][command='show-modal']");
    if (!button) return;
    button.closest("details.menu")?.removeAttribute("open");
    const dialog = find(`#${CSS.escape(button.getAttribute("commandfor"))}`);
    // Browsers that support the attribute open the dialog themselves.
    if ("commandForElement" in button) openers.set(dialog, { element: button, id: button.id });
    else openDialog(dialog, button);
  });

  // A click on the backdrop closes a dialog, unless text was typed in it.
  listen("pointerdown", (event) => {
    const dialog = event.target;
    if (dialog.matches?.("dialog[open]") && !isInside(event, dialog) && !hasTypedText(dialog)) dialog.close();
  });

  function isInside(event, element) {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom;
  }

  function hasTypedText(element) {
    return findAll("input, textarea", element).some((field) => field.type !== "hidden" && field.value !== field.defaultValue);
  }

  // "close" does not bubble.
  listen(
    "close",
    (event) => {
      const dialog = event.target;
      if (!(dialog instanceof HTMLDialogElement)) return;
      if (isFocusLost(dialog)) returnFocus(openers.get(dialog));
      if (dialog.closest("#dialogs")) dialog.remove();
    },
    { capture: true },
  );

  // The event comes some time after the dialog was closed: somebody may type elsewhere by then.
  function isFocusLost(dialog) {
    const element = document.activeElement;
    return !element || element === document.body || dialog.contains(element);
  }

  function returnFocus(opener) {
    // A swap may have replaced the opener by a new element with the same id.
    const element = opener?.element?.isConnected ? opener.element : opener?.id && document.getElementById(opener.id);
    if (!(element instanceof Element)) return; // the document, if nothing had the focus
    // An opener inside a closed menu cannot take the focus; the summary of the menu can.
    const visible = element.checkVisibility() ? element : element.closest("details.menu")?.querySelector("summary");
    visible?.focus();
  }

  // --- menus: a click elsewhere, the focus elsewhere and Escape close them

  const closeMenu = (menu) => menu.removeAttribute("open");

  const closeOtherMenus = ({ target }) =>
    findAll("details.menu[open]").forEach((menu) => menu.contains(target) || closeMenu(menu));
  listen("click", closeOtherMenus);
  listen("focusin", closeOtherMenus);

  listen("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = event.target.closest?.("details.menu[open]") || find("details.menu[open]");
    if (!menu) return;
    closeMenu(menu);
    find("summary", menu).focus();
  });

  Object.assign(agentcms, { openDialog, openerOf, hasTypedText });
})();
