// The button that changes between light and dark.

(() => {
  "use strict";

  const { listen } = agentcms;

  listen("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    // A cookie, so that the server sends the next page in this theme.
    document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
  });
})();
