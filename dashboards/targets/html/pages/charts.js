// Charts: the specification of the panel, with the rows that are chosen; one after the other, those in sight first.
const MARKED = { unnamed: "unnamed" };

// The rows of a figure as Vega-Lite takes them.
function datasets(figure, pool, chosen, made) {
  let rows = figure.rows.filter((row) => chosen.has(row));
  if (figure.groups) {
    const found = grouped(pool, rows, figure.groups);
    const more = {};
    for (const name of figure.every || []) more[name] = grouped(pool, figure.rows, figure.groups).records;
    return { rows: found.records, more, shown: found.shown, count: found.count };
  }
  if (figure.counts) {
    const total = (column) => rows.reduce((sum, row) => sum + pool.column(column)[row], 0);
    return { rows: figure.counts.map((column) => ({ doc_count: total(column) })), more: {}, shown: 0, count: 0 };
  }
  const count = rows.length + (made.beyond || 0);
  if (made.most && made.kind === "dots-with-errors") rows = rows.slice(0, made.most);
  const columns = Object.entries(figure.columns).map(([name, column]) => [name, pool.column(column)]);
  const texts = figure.texts.map((column) => column && pool.column(column));
  const records = rows.map((row) => {
    const record = {};
    for (const [name, values] of columns) if (values[row] !== null) record[name] = values[row];
    texts.forEach((values, place) => { record["text_" + place] = (values && values[row]) ?? "–"; });
    if ("name" in figure.columns) record.name ??= MARKED.unnamed;
    return record;
  });
  const names = new Set(records.map((record) => record.name));
  const more = {};
  for (const [name, held] of Object.entries(figure.data)) {
    more[name] = held.filter((each) => !("label" in each && "name" in each) || names.has(each.name));
  }
  if (figure.beyond) more.beyond = beyond(figure.beyond, records);
  return { rows: records, more, shown: rows.length, count, looks: figure.look && looksOf(pool.column(figure.look), rows) };
}

// Vega keeps groups in plain objects under their names, of which those that every object has ("constructor") are
// taken: a chart of such a name fails, unless a letter without width stands behind it.
const APART = "\u200b";

function apart(value) {
  return typeof value === "string" && value in {} ? value + APART : value;
}

function together(name) {
  const bare = name.slice(0, -1);
  return name.endsWith(APART) && bare in {} ? bare : name;
}

function namesApart(rows) {
  return rows.map((row) => {
    const taken = Object.entries(row).filter(([, value]) => apart(value) !== value);
    return taken.length ? { ...row, ...Object.fromEntries(taken.map(([key, value]) => [key, apart(value)])) } : row;
  });
}

// Values that lie beyond the axis stand at its end, with their numbers.
function beyond(axis, records) {
  return records
    .filter((each) => each[axis.value] < axis.low || each[axis.value] > axis.high)
    .map((each) => ({
      x: Math.min(Math.max(each[axis.value], axis.low), axis.high),
      label: each[axis.text],
      [axis.row]: axis.row === "row" ? axis.keys.map((key) => each[key]).join(" · ") : each[axis.row],
    }));
}

function looksOf(values, rows) {
  const found = new Set(rows.map((row) => values[row]));
  return Object.keys(KNOWN.looks).filter((label) => found.has(label));
}

function legendOfLooks(labels, needed) {
  if (labels.length < 2 && !needed) return null;
  return legend("", labels.map((label) => ({ label, ...KNOWN.looks[label] })));
}

function legend(style, entries) {
  const list = element("ul", "legend " + style);
  for (const entry of entries) {
    const button = element("button");
    button.type = "button";
    button.title = "bring forward";
    button.setAttribute("aria-pressed", "false");
    button.dataset.colour = entry.colour;
    button.append(swatch(entry), shortened(entry.label));
    const item = element("li");
    item.append(button);
    list.append(item);
  }
  return list;
}

function swatch(entry) {
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawn.setAttribute("class", "swatch" + (entry.filled ? "" : " hollow"));
  drawn.setAttribute("viewBox", "-6 -6 12 12");
  drawn.setAttribute("aria-hidden", "true");
  drawn.style.color = "var(--" + entry.name + ")";
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", entry.path);
  drawn.append(path);
  return drawn;
}

const CIRCLE = "M4,0A4,4,0,1,1,-4,0A4,4,0,1,1,4,0Z";

// Names over time: each has its colour in the order of the alphabet, as in every other target.
function legendOfSeries(series, records) {
  const names = Array.from(new Set(records.map((each) => each[series.column]))).sort();
  const entries = names.map((label, place) => {
    const colour = place % series.colours.length;
    return { label, name: "series-" + colour, colour: series.colours[colour], path: CIRCLE, filled: true };
  });
  return [names, legend("series", entries)];
}

function heightOf(figure, records) {
  if (!figure.step) return figure.spec.height;
  const names = new Set(records.map((each) => JSON.stringify(figure.keys.map((key) => each[key])))).size;
  const step = names < figure.step.from ? figure.step.row : figure.step.dense;
  return step * Math.max(names, 2) + (figure.step.extra || 0);
}

function withNames(spec, column, names) {
  return {
    ...spec,
    layer: spec.layer.map((layer) => {
      const colour = layer.encoding && layer.encoding.color;
      if (!colour || colour.field !== column) return layer;
      const scale = { ...colour.scale, domain: names };
      return { ...layer, encoding: { ...layer.encoding, color: { ...colour, scale } } };
    }),
  };
}

// The figure of a chart, before it is drawn.
function figureOf(figure, pool, chosen, made, title) {
  const held = datasets(figure, pool, chosen, made);
  held.rows = namesApart(held.rows);
  if (!held.rows.length) return null;
  const holder = element("figure");
  holder.setAttribute("aria-label", title);
  holder.dataset.marks = held.rows.length;
  let spec = { ...figure.spec, height: heightOf(figure, held.rows) };
  if (figure.series) {
    const [names, list] = legendOfSeries(figure.series, held.rows);
    holder.append(list);
    spec = withNames(spec, figure.series.column, names);
  } else if (held.looks) {
    const list = legendOfLooks(held.looks, made.kind === "scatter-line");
    if (list) holder.append(list);
  }
  const chart = element("div", "chart");
  if (typeof spec.height === "number") chart.style.minHeight = spec.height + "px";
  const more = Object.entries(held.more).map(([name, rows]) => [name, namesApart(rows)]);
  spec.datasets = { ...Object.fromEntries(more), rows: held.rows };
  holder.append(chart);
  if (figure.caption) holder.append(element("figcaption", "", figure.caption));
  if (held.shown < held.count) {
    holder.append(element("p", "cut-off", "The first " + number(held.shown) + " of " + number(held.count) + " are shown."));
  }
  return { holder, chart, spec, each: figure.each };
}

// One after the other, so that a reader can go on meanwhile; what is no longer wanted is left out.
class Drawer {
  constructor() {
    this.views = new Map();
    this.turn = 0;
  }

  async draw(charts) {
    const turn = (this.turn += 1);
    document.body.dataset.wanted = String(turn);
    await library;
    for (const [chart, view] of this.views) {
      if (!chart.isConnected) {
        view.finalize();
        this.views.delete(chart);
      }
    }
    for (const { chart, spec, each, follow, answered } of charts) {
      await answered;
      if (turn !== this.turn) return;
      if (!chart) continue;
      chart.dataset.state = "drawing";
      try {
        const result = await vegaEmbed(chart, spec, SHARED.formatLocale);
        if (turn !== this.turn) {
          result.view.finalize();
          return;
        }
        this.views.set(chart, result.view);
        if (each) result.view.height(each * Math.max(result.view.scale("y").domain().length, 2)).run();
        if (follow) result.view.addEventListener("click", follow);
        chart.dataset.state = "drawn";
        chart.style.minHeight = "";
      } catch (error) {
        chart.dataset.state = "failed";
        chart.textContent = "This chart could not be drawn: " + error.message;
        console.error(error);
      }
      await new Promise((go) => { setTimeout(go); });
    }
    document.body.dataset.drawn = String(turn);
  }

  // Paper is narrower than a screen: charts are drawn for it, and shrink with their letters.
  paper(width) {
    for (const [chart, view] of this.views) {
      if (width) view.width(Math.min(width, chart.clientWidth || width)).run();
    }
  }
}

// What a chart works out about its rows, without a picture: the answer of the light.
async function workedOut(spec, column) {
  await library;
  const nowhere = element("div");
  const result = await vegaEmbed(nowhere, { ...spec, width: 100000 });
  const rows = result.vgSpec.data.map((each) => result.view.data(each.name)[0]);
  result.view.finalize();
  return rows.find((row) => row && column in row);
}
