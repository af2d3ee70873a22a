// Functions that the other scripts share, as properties of window.agentcms.
//
// The scripts are classic and deferred, so they run in the order of their tags: a script may use what an earlier one adds.
// Most listen on the document and look for data attributes, because htmx adds elements later.

window.agentcms = (() => {
  "use strict";

  // The style sheet hides what needs scripts until they run: the browser may block them.
  document.documentElement.toggleAttribute("data-scripts", true);

  const find = (selector, root = document) => root.querySelector(selector);
  const findAll = (selector, root = document) => [...root.querySelectorAll(selector)];
  const listen = (type, listener, options) => document.addEventListener(type, listener, options);
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

  const setups = [];

  // Call setUp once for each element that matches: now, and after each swap of htmx.
  // Return a function that sets up the elements which the caller adds itself.
  function onAdded(selector, setUp) {
    const setup = { selector, setUp, done: new WeakSet() };
    setups.push(setup);
    runSetup(setup);
    return () => runSetup(setup);
  }

  function runSetup({ selector, setUp, done }) {
    findAll(selector).forEach((element) => {
      if (done.has(element)) return;
      done.add(element);
      setUp(element);
    });
  }

  // On the window, not the document: a new dialog is opened by a listener on the document, and must be open by now.
  addEventListener("htmx:after:swap", () => setups.forEach(runSetup));

  const numberFormat = new Intl.NumberFormat("en");
  const formatNumber = (number) => numberFormat.format(number);
  const formatCount = (count, noun) => `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;

  return { find, findAll, listen, onAdded, isMac, formatNumber, formatCount };
})();
