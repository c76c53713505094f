// The page: its panels in their places, filled from the rows that are chosen.
const page = {};
const parts = new Map();
const esjobs = {
  rows(number, held) {
    parts.set(number, {
      pools: Object.fromEntries(Object.entries(held.pools).map(([name, packed]) => [name, new Pool(packed)])),
      panels: Object.fromEntries(Object.entries(held.panels).map(([id, made]) => [id, withPlaces(made)])),
      options: held.options || null,
    });
    if (page.choices && page.choices.file === number) show();
  },
};

const library = new Promise((ready) => {
  if (window.vegaEmbed) ready();
  else document.getElementById("vega").addEventListener("load", () => ready());
});

function start() {
  page.described = JSON.parse(document.getElementById("page").textContent);
  page.choices = new Choices(page.described.choices, page.described.main, page.described.values, page.described.opened);
  page.form = new ChoicesForm(document.getElementById("choices"), page.choices);
  page.drawer = new Drawer();
  page.panels = page.described.panels.map(placed);
  document.getElementById("results").replaceChildren(...page.panels.map((panel) => panel.block));
  page.panels.filter((panel) => panel.described.terms).forEach((panel) => panel.body.append(termsOf(panel)));
  followLinks();
}

function placed(described) {
  const block = element("section", "block kind-" + described.kind);
  block.id = described.id;
  block.dataset.panel = described.id;
  block.style.setProperty("--span", described.width);
  const heading = element("h2", "", described.title);
  heading.id = "title-" + described.id;
  block.setAttribute("aria-labelledby", heading.id);
  block.append(heading);
  const about = element("p", "about", described.about);
  if (described.about) block.append(about);
  const body = element("div", "body");
  block.append(body);
  return { described, block, body, table: null };
}

function termsOf(panel) {
  const files = page.described.files;
  // sentences without a term are no list of definitions
  const alone = panel.described.terms.every(([term]) => !term);
  const list = element(alone ? "ul" : "dl", "terms");
  for (const [term, text] of panel.described.terms) {
    if (!term) {
      list.append(element(alone ? "li" : "dd", "alone", text));
      continue;
    }
    const name = element("dt");
    const file = files[Object.keys(files).find((id) => page.described.titles[id] === term)];
    if (file) {
      const link = element("a", "way", term);
      link.dataset.file = file;
      name.append(link);
    } else name.textContent = term;
    list.append(name, element("dd", "", text));
  }
  return list;
}

// Links to other pages take along what was chosen.
function followLinks() {
  document.querySelectorAll("nav a, a.way").forEach((link) => {
    link.dataset.file ??= link.getAttribute("href");
    link.href = address(link.dataset.file, page.choices.state);
  });
}

function wanted() {
  page.choices.read();
  followLinks();
  const number = page.choices.file;
  if (parts.has(number)) show();
  else load(number);
}

// A table is sorted and searched in all its rows.
function whole() {
  page.choices.opened = "";
  wanted();
}

function load(number) {
  const script = element("script");
  script.src = document.body.dataset.folder + "/" + page.described.id + "-" + number + ".js";
  document.body.dataset.loading = "";
  document.head.append(script);
}

function show() {
  delete document.body.dataset.loading;
  const { pools, panels, options } = parts.get(page.choices.file);
  page.choices.known = options;
  page.form.follow(pools);
  const chosen = Object.fromEntries(
    Object.entries(pools).map(([name, pool]) => [name, new Set(page.choices.rows(pool, pools))])
  );
  const charts = [];
  for (const panel of page.panels) {
    const made = panels[panel.described.id];
    if (!made) continue;
    if (made.lacking) {
      const words = "The jobs say nothing that can be added up of: " + made.lacking.join(", ") + ".";
      panel.body.replaceChildren(element("p", "empty", words));
      continue;
    }
    fillPanel(panel, { ...made, kind: panel.described.kind }, pools[made.pool], pools, chosen[made.pool], charts);
  }
  page.drawer.draw(charts);
  document.body.dataset.shown = String(page.choices.part);
}

function fillPanel(panel, made, pool, pools, chosen, charts) {
  const rows = made.rows.filter((row) => chosen.has(row));
  if (!rows.length && made.kind !== "tiles") {
    panel.table = null;
    panel.body.replaceChildren(empty(panel, page.choices.unknownTo(pool, pools)));
    return;
  }
  const maker = MAKERS[made.kind] || figures;
  maker(panel, made, pool, rows, chosen, charts);
}

function empty(panel, unknown) {
  const more = unknown.length ? " These rows do not say: " + unknown.join(", ") + "." : "";
  return element("p", "empty", panel.described.empty + more);
}

const MAKERS = {
  tiles(panel, made, pool, rows, chosen) {
    const list = element("ul", "tiles");
    const share = element("div", "share");
    share.setAttribute("aria-hidden", "true");
    for (const tile of made.tiles) {
      const met = tile.rows.filter((row) => chosen.has(row));
      const held = tile.column ? met.map((row) => pool.column(tile.column)[row]).filter((each) => each !== null) : null;
      const n = held ? (held.length ? Math.max(...held) : null) : met.length;
      const known = tile.look && KNOWN.looks[KNOWN.verdicts[tile.look]];
      const item = element("li", known ? known.name : "");
      if (tile.note) item.title = tile.note;
      item.append(element("b", "", n === null ? "–" : number(n)));
      const label = element("span");
      if (known) {
        const glyph = element("i", "", known.glyph);
        glyph.setAttribute("aria-hidden", "true");
        label.append(glyph, " ");
        if (n) {
          const bar = element("i", known.name);
          bar.style.flexGrow = n;
          share.append(bar);
        }
      }
      label.append(n === 1 ? tile.one : tile.label);
      item.append(label);
      list.append(item);
    }
    panel.body.replaceChildren(list, share);
  },

  statement(panel, made, pool, rows) {
    const [row] = rows;
    const texts = made.texts.map((column) => pool.column(column)[row]).filter((text) => text !== null);
    const told = texts.map((text, place) => element("p", place ? "further-words" : "loud", text));
    const old = document.getElementById("too-old");
    if (old && told.length) told[told.length - 1].append(old.content.cloneNode(true));
    panel.body.replaceChildren(...told);
    SHARED.grow(document);
  },

  caption(panel, made, pool, rows) {
    const words = rows.length === 1 ? "1 " + made.one : number(rows.length) + " " + made.label;
    panel.body.replaceChildren(element("p", "further-words", words));
  },

  light(panel, made, pool, rows, chosen, charts) {
    const held = datasets(made.figures[0], pool, chosen, made);
    const spec = { ...made.figures[0].spec, datasets: { ...held.more, rows: held.rows } };
    const answered = workedOut(spec, "word").then((answer) => {
      const light = element("div", "light");
      light.dataset.word = answer.word;
      const word = element("b", "", answer.word);
      light.append(swatch({ name: LIGHTS[answer.word][0], path: LIGHTS[answer.word][1], filled: true }), word);
      light.style.setProperty("--light", "var(--" + LIGHTS[answer.word][0] + ")");
      panel.body.replaceChildren(light, element("p", "", answer.small.replace(/\s*\n/g, " ").trim()));
    });
    charts.push({ answered });
  },

  table: table,
  rows: table,
};
MAKERS.sentence = MAKERS.statement;

const LIGHTS = {
  Yes: ["go", CIRCLE],
  "With care": ["care", "M0,-4.6L4.8,3.7H-4.8Z"],
  No: ["stop", "M0,-5L5,0L0,5L-5,0Z"],
};

function table(panel, made, pool, rows) {
  if (!panel.table) {
    const holder = element("div", "table");
    panel.body.replaceChildren(holder);
    panel.table = new Table(holder, panel.described.title);
  }
  panel.table.show(pool, made, rows);
  if (made.first) panel.table.told.textContent = "Among the first " + number(made.first) + " of all rows: there may be more.";
  if (made.of) panel.table.told.textContent = "The first " + number(rows.length) + " of " + number(made.of) + " rows.";
}

// What a chart says instead of itself where it has nothing to compare the chosen rows with.
function lacking(figure, pool, rows) {
  if (!figure.needs) return "";
  const known = new Set(figure.needs.names);
  const names = pool.column(figure.label);
  return rows.some((row) => known.has(names[row])) ? "" : figure.needs.told;
}

function figures(panel, made, pool, rows, chosen, charts) {
  const told = made.figures.map((figure) => lacking(figure, pool, rows)).find(Boolean);
  if (told) {
    panel.body.replaceChildren(element("p", "empty", told));
    return;
  }
  const found = made.figures.map((figure) => figureOf(figure, pool, chosen, made, panel.described.title)).filter(Boolean);
  if (!found.length) {
    panel.body.replaceChildren(empty(panel, []));
    return;
  }
  panel.body.replaceChildren(...found.map((each) => each.holder));
  const follow = made.names_lead_to
    ? (event, item) => {
        const name = item && item.datum && item.datum[made.names_lead_to.column];
        if (item && item.mark && item.mark.name && item.mark.name.startsWith("marks") && name) location.href = leadingTo(made.names_lead_to.key, together(name));
      }
    : null;
  charts.push(...found.map((each) => ({ ...each, follow })));
}

document.addEventListener("click", (event) => {
  const more = event.target.closest(".more");
  if (more) SHARED.reveal(more);
  const entry = event.target.closest(".legend button");
  if (entry) SHARED.bringForward(entry);
  const skip = event.target.closest(".skip");
  if (skip) {
    event.preventDefault();
    document.getElementById("results").focus();
  }
});
window.addEventListener("error", (event) => {
  if (event.target instanceof HTMLScriptElement) {
    const words = "A part of this page is not there. It was replaced while you were reading, perhaps: load the page again.";
    document.getElementById("results").prepend(element("p", "empty gone", words));
  }
}, true);
window.addEventListener("popstate", wanted);
window.addEventListener("beforeprint", () => page.drawer.paper(680));
window.addEventListener("afterprint", () => window.dispatchEvent(new Event("resize")));
SHARED.grow(document);
start();
wanted();
