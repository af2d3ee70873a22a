// Opens the route or schema that the address names, and marks the route that is read in the list of routes.
(() => {
  "use strict";

  const { findAll } = window.agentcms;

  const index = document.querySelector("nav.api-index");
  const inView = new Set();
  let chosen = ""; // the id of the route that the address names, until it leaves the window

  function mark(id) {
    findAll(".api-index a").forEach((link) => {
      const isCurrent = id && link.hash === `#${id}`;
      if (!isCurrent) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        if (index?.contains(link)) reveal(link);
      }
    });
  }

  // The list scrolls, and the page does not.
  function reveal(link) {
    const [box, frame] = [link.getBoundingClientRect(), index.getBoundingClientRect()];
    if (box.top < frame.top || box.bottom > frame.bottom) index.scrollTop += box.top - frame.top - frame.height / 3;
  }

  function openTarget() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (target instanceof HTMLDetailsElement) target.open = true;
    chosen = target ? id : "";
    mark(chosen);
    if (target) target.scrollIntoView();
  }

  const routes = findAll(".api-route, .api-group > h2[id=schemas]");
  const observer = new IntersectionObserver(
    (entries) => {
      entries.forEach(({ target, isIntersecting }) => inView[isIntersecting ? "add" : "delete"](target));
      const first = routes.find((route) => inView.has(route));
      if (!inView.has(document.getElementById(chosen))) chosen = "";
      if (first) mark(chosen || (first.id.startsWith("schema-") ? "schemas" : first.id));
    },
    { rootMargin: "-64px 0px 0px 0px" },
  );
  routes.forEach((route) => observer.observe(route));

  addEventListener("hashchange", openTarget);
  openTarget();
})();
