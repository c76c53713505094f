"use strict";
(function () {
  const { formatLocale, hidden, shorten, reveal, watch, bringForward, compare, missing } = SHARED;
  const specs = JSON.parse(document.getElementById("charts").textContent);
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

  function draw(element) {
    if (element.dataset.state || hidden(element)) return;
    element.dataset.state = "drawing";
    vegaEmbed(element, unpack(specs[Number(element.dataset.chart)]), formatLocale).then(
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

  function openAround(element) {
    for (let each = element.closest("details"); each; each = each.parentElement.closest("details")) {
      each.open = true;
    }
  }

  // The state of the page as its address has it: #queue=NAME&type=TYPE, either of them or both.
  function fromAddress() {
    const asked = new URLSearchParams(window.location.hash.slice(1));
    const [queue, type] = [asked.get("queue"), asked.get("type")];
    if (queue === null && type === null) return;
    const types = Array.from(document.querySelectorAll("details.type"));
    const chosen = types.find((each) => each.querySelector("summary b").textContent === type);
    if (chosen) chosen.open = true;
    let target = chosen;
    if (queue !== null) {
      const inside = chosen || document;
      const all = Array.from(inside.querySelectorAll(".filter input"));
      const inputs = all.filter((input) => chosen || !input.closest("details.type"));
      inputs.forEach((input) => {
        input.value = queue;
        filter(input);
      });
      const first = inputs.find((input) => input.closest(".table").querySelector("tbody:not([hidden])"));
      if (first) openAround(first);
      const profiles = Array.from(document.querySelectorAll("details.profile"));
      const own = profiles.find((each) => JSON.parse(each.dataset.names).includes(queue));
      if (own) own.open = true;
      target = (first && first.closest(".block")) || own || chosen;
    }
    drawAll();
    if (target) target.scrollIntoView();
  }

  function toAddress(element, text) {
    const type = element.closest("details.type");
    const state = new URLSearchParams();
    if (text) state.set("queue", text);
    if (type) state.set("type", type.querySelector("summary b").textContent);
    const hash = state.toString();
    window.history.replaceState(null, "", hash ? "#" + hash : window.location.pathname + window.location.search);
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
    if (!event.target.closest(".filter")) return;
    filter(event.target);
    toAddress(event.target, event.target.value);
  });
  document.addEventListener("toggle", drawAll, true);
  window.addEventListener("hashchange", fromAddress);
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", toScreen);
  document.querySelectorAll(".scroll").forEach(watch);
  SHARED.grow(document);
  drawAll();
  fromAddress();
})();
