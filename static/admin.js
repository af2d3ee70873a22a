// What the admin does beyond Django's own.

(() => {
  "use strict";

  // Signing out clears what this person left unsaved in the browser, here as on the pages.
  document.getElementById("logout-form")?.addEventListener("submit", (event) => {
    const { user } = event.target.dataset;
    try {
      Object.keys(localStorage)
        .filter((key) => key.startsWith(`agentcms:unsaved:${user}:`))
        .forEach((key) => localStorage.removeItem(key));
    } catch {
      // Storage is blocked, so nothing was kept in it.
    }
  });

  // What opened in the place of a link takes the focus that the link had.
  let opens = "";
  document.addEventListener("htmx:before:swap", () => {
    opens = document.activeElement?.dataset.opens;
  });
  document.addEventListener("htmx:after:swap", () => {
    const opened = opens && document.getElementById(opens);
    if (!opened) return;
    opened.tabIndex = -1;
    opened.focus({ preventScroll: true });
  });
})();
