// Scripts of the Django admin, which does not load those of the other pages.

(() => {
  "use strict";

  // Signing out removes the unsaved text of this user, as unsaved_text.js does on other pages.
  document.getElementById("logout-form")?.addEventListener("submit", (event) => {
    const { user } = event.target.dataset;
    try {
      Object.keys(localStorage)
        .filter((key) => key.startsWith(`agentcms:unsaved:${user}:`))
        .forEach((key) => localStorage.removeItem(key));
    } catch {
      // Storage is blocked, so it contains no text.
    }
  });

  // An element that takes the place of a focused link takes the focus.
  let replacementId = "";
  document.addEventListener("htmx:before:swap", () => {
    replacementId = document.activeElement?.dataset.opens;
  });
  document.addEventListener("htmx:after:swap", () => {
    const replacement = replacementId && document.getElementById(replacementId);
    if (!replacement) return;
    replacement.tabIndex = -1;
    replacement.focus({ preventScroll: true });
  });
})();
