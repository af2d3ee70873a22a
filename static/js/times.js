// Relative times, updated while the page is open. components/_time.html writes the same words. The exact time, which
// the server writes in its own time zone, is in the zone and the locale of the reader.

(() => {
  "use strict";

  const { findAll, onAdded } = agentcms;
  const REFRESH_INTERVAL = 30_000;
  const UNITS = [
    ["year", 31536000],
    ["month", 2629800],
    ["week", 604800],
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
  ];

  function formatAge(date) {
    const seconds = (Date.now() - date.getTime()) / 1000;
    const unit = UNITS.find(([, size]) => seconds >= size);
    if (!unit) return "just now";
    const count = Math.floor(seconds / unit[1]);
    return `${count}\u00a0${unit[0]}${count === 1 ? "" : "s"} ago`;
  }

  function refreshTimes() {
    findAll("time[data-relative]").forEach((time) => {
      const text = formatAge(new Date(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    });
  }
  const exactFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "long" });
  onAdded("time[title]", (time) => (time.title = exactFormat.format(new Date(time.dateTime))));
  onAdded("time[data-exact]", (time) => (time.textContent = exactFormat.format(new Date(time.dateTime))));
  setInterval(refreshTimes, REFRESH_INTERVAL);
})();
