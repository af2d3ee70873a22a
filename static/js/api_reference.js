// Opens the route or schema that the address names, and marks it in the list of routes.
(() => {
  "use strict";

  const { findAll } = window.agentcms;

  function openTarget() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (target instanceof HTMLDetailsElement) target.open = true;
    findAll(".api-index a").forEach((link) => {
      const isCurrent = id && link.hash === `#${id}`;
      if (isCurrent) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (isCurrent) link.scrollIntoView({ block: "nearest" });
    });
    if (target) target.scrollIntoView();
  }

  addEventListener("hashchange", openTarget);
  openTarget();
})();
