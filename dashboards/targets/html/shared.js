"use strict";
// What the report and the pages have in common: numbers of charts, how long texts and wide tables behave.
const SHARED = (function () {
  // Numbers of charts read as those of texts do: esjobs/core/numbers.py, and a test compares them.
  const formatLocale = {
    decimal: ".",
    thousands: ",",
    grouping: [3],
    currency: ["", ""],
    percent: "\u202f%",
    minus: "−",
  };
  function hidden(element) {
    return element.parentElement.closest("details:not([open])") !== null;
  }

  // Without this script nothing is cut: a text is shortened only where a button can open it again.
  function shorten(text) {
    if (text.dataset.state || hidden(text)) return;
    text.classList.add("cut");
    if (text.scrollHeight <= text.clientHeight + 1) {
      text.classList.remove("cut");
      return;
    }
    text.dataset.state = "cut";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "more";
    button.setAttribute("aria-expanded", "false");
    button.textContent = "show all";
    text.after(button);
  }

  function reveal(button) {
    const open = button.previousElementSibling.classList.toggle("cut") === false;
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "show less" : "show all";
  }

  // What does not scroll is no stop for the keyboard, and shows no cue.
  function cue(region) {
    const room = region.scrollWidth - region.clientWidth;
    const frame = region.parentElement;
    frame.classList.toggle("over-wide", room > 1);
    frame.classList.toggle("more-left", room > 1 && region.scrollLeft > 1);
    frame.classList.toggle("more-right", room > 1 && region.scrollLeft < room - 1);
    if (room > 1 || region.scrollHeight > region.clientHeight + 1) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }

  function bringForward(button) {
    const figure = button.closest("figure");
    const chosen = button.getAttribute("aria-pressed") === "true" ? null : button;
    figure.querySelectorAll(".legend button").forEach((each) => {
      each.setAttribute("aria-pressed", String(each === chosen));
    });
    const lines = button.closest(".series") ? ", .line_marks path, .line_pathgroup path" : "";
    figure.querySelectorAll(".marks_marks > path, .bars_marks > line" + lines).forEach((mark) => {
      const own = ["stroke", "fill"].map((side) => mark.getAttribute(side));
      mark.classList.toggle("dimmed", chosen !== null && !own.includes(chosen.dataset.colour));
    });
  }

  function compare(a, b) {
    return typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
  }

  function missing(key) {
    return key === null || key === "–";
  }

  const sizes = new ResizeObserver((entries) => {
    entries.forEach((entry) => cue(entry.target.closest(".scroll")));
  });

  function watch(region) {
    sizes.observe(region);
    Array.from(region.children).forEach((child) => sizes.observe(child));
    region.addEventListener("scroll", () => cue(region), { passive: true });
  }

  // A file grows old after it was written: its age and its light are those of now.
  function grow(root) {
    const line = document.querySelector(".age");
    if (!line || !line.dataset.end) return "";
    const days = Math.max(0, (Date.now() - Date.parse(line.dataset.end)) / 86400000);
    const words = ["Yes", "With care", "No"];
    const byAge = days > Number(line.dataset.stale) ? 2 : days > Number(line.dataset.fresh) ? 1 : 0;
    line.dataset.light = words[Math.max(byAge, words.indexOf(line.dataset.best))];
    line.querySelector("b").textContent = line.dataset.light;
    const count = Math.round(days);
    const ago = " (" + count + (count === 1 ? " day ago)" : " days ago)");
    root.querySelectorAll(".ago").forEach((each) => { each.textContent = ago; });
    root.querySelectorAll(".too-old").forEach((each) => { each.hidden = byAge < 2; });
  }

  return { formatLocale, grow, hidden, shorten, reveal, watch, bringForward, compare, missing };
})();
