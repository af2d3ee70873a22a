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
})();
