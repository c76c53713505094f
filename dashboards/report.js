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
    return Object.assign({}, spec, { datasets: datasets });
  }

  function hidden(element) {
    return element.parentElement.closest("details:not([open])") !== null;
  }

  function draw(element) {
    if (element.dataset.state || hidden(element)) return;
    element.dataset.state = "drawing";
    vegaEmbed(element, unpack(specs[Number(element.dataset.chart)]), options).then(
      () => { element.dataset.state = "drawn"; },
      (error) => {
        element.dataset.state = "failed";
        element.textContent = "This chart could not be drawn: " + error.message;
        console.error(error);
      }
    );
  }

  function drawAll() {
    document.querySelectorAll(".chart").forEach(draw);
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
    const long = event.target.closest(".long");
    if (long && !window.getSelection().toString()) long.classList.toggle("open");
  });
  document.addEventListener("input", (event) => {
    if (event.target.closest(".filter")) filter(event.target);
  });
  document.addEventListener("toggle", drawAll, true);
  drawAll();
})();
