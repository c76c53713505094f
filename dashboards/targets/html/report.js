"use strict";
(function () {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const options = {
    renderer: "svg",
    ast: true,
    actions: false,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "report" },
  };

  const views = new Map();

  function unpack(spec) {
    const datasets = {};
    for (const [name, packed] of Object.entries(spec.datasets)) {
      datasets[name] = packed.rows.map((row) => {
        const record = {};
        packed.names.forEach((key, place) => {
          if (row[place] !== null) record[key] = row[place];
        });
        return record;
      });
    }
    const complete = Object.assign({}, specs[spec.like], spec, { datasets: datasets });
    delete complete.like;
    return complete;
  }

  // A chart is drawn for a page somewhat wider than A4 and shrunk with its letters; heights against the screen's.
  const PAPER = { width: 860, gap: 24, height: 0.86 };

  function hidden(element) {
    return element.parentElement.closest("details:not([open])") !== null;
  }

  function draw(element) {
    if (element.dataset.state || hidden(element)) return;
    element.dataset.state = "drawing";
    vegaEmbed(element, unpack(specs[Number(element.dataset.chart)]), options).then(
      (result) => {
        element.dataset.state = "drawn";
        views.set(element, result.view);
        if (printing) fitPaper(result.view, element);
      },
      (error) => {
        element.dataset.state = "failed";
        element.textContent = "This chart could not be drawn: " + error.message;
        console.error(error);
      }
    );
  }

  function drawAll() {
    document.querySelectorAll(".chart").forEach(draw);
    document.querySelectorAll(".long").forEach(shorten);
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
    figure.querySelectorAll(".marks_marks > path, .bars_marks > line").forEach((mark) => {
      const other = chosen !== null && mark.getAttribute("stroke") !== chosen.dataset.colour;
      mark.classList.toggle("dimmed", other);
    });
  }

  let opened = [];
  let printing = false;

  function fitPaper(view, element) {
    if (element.closest(".wide")) return;
    const columns = Number(element.dataset.columns);
    const width = (PAPER.width - PAPER.gap * (columns - 1)) / columns;
    const height = Math.round(specs[Number(element.dataset.chart)].height * PAPER.height);
    view.width(width).height(height).resize().run();
  }

  function toPaper() {
    printing = true;
    const everything = document.getElementById("everything");
    const left = everything && !everything.checked ? ".asked, .asked *, .type, .type *" : "nothing";
    opened = Array.from(document.querySelectorAll("details:not([open])")).filter((each) => !each.matches(left));
    opened.forEach((each) => { each.open = true; });
    drawAll();
    views.forEach(fitPaper);
  }

  function toScreen() {
    opened.forEach((each) => { each.open = false; });
    opened = [];
    printing = false;
    views.forEach((view, element) => view.height(specs[Number(element.dataset.chart)].height));
    window.dispatchEvent(new Event("resize"));
  }

  function sortKey(row, place) {
    const cell = row.cells[place];
    if (cell.dataset.v === undefined) return cell.textContent.trim();
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  }

  function compare(a, b) {
    return typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
  }

  function missing(key) {
    return key === null || key === "–";
  }

  function sort(heading) {
    const table = heading.closest("table");
    const descending = heading.getAttribute("aria-sort") === "ascending";
    const sign = descending ? -1 : 1;
    const keyed = Array.from(table.tBodies, (body) => [sortKey(body.rows[0], heading.cellIndex), body]);
    keyed.sort(([a], [b]) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return sign * compare(a, b);
    });
    table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    table.append(...keyed.map(([, body]) => body));
  }

  function filter(input) {
    const holder = input.closest(".table");
    const rows = Array.from(holder.querySelector("table").tBodies);
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown += 1;
    }
    holder.querySelector(".shown").textContent = words.length ? shown + " of " + rows.length : "";
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("table.sortable th button");
    if (button) sort(button.closest("th"));
    const more = event.target.closest(".more");
    if (more) reveal(more);
    const entry = event.target.closest(".legend button");
    if (entry) bringForward(entry);
  });
  document.addEventListener("input", (event) => {
    if (event.target.closest(".filter")) filter(event.target);
  });
  document.addEventListener("toggle", drawAll, true);
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", toScreen);
  const sizes = new ResizeObserver((entries) => {
    entries.forEach((entry) => cue(entry.target.closest(".scroll")));
  });
  document.querySelectorAll(".scroll").forEach((region) => {
    sizes.observe(region);
    Array.from(region.children).forEach((child) => sizes.observe(child));
    region.addEventListener("scroll", () => cue(region), { passive: true });
  });
  drawAll();
})();
