// Tables: made of text alone, sorted and searched in the rows rather than on the page, in portions.
const PORTION = 100;
const SEARCHED_FROM = 10;
const LONG = { name: 48, sentence: 600, other: 160 };

class Table {
  constructor(holder, title) {
    this.holder = holder;
    this.sorted = null;
    this.words = "";
    this.portion = PORTION;
    this.search = element("label", "filter", "Search ");
    const input = element("input");
    input.type = "search";
    input.placeholder = "any column";
    input.autocomplete = "off";
    this.told = element("span", "shown");
    this.told.setAttribute("role", "status");
    this.search.append(input, " ", this.told);
    input.addEventListener("input", () => {
      this.words = input.value;
      this.portion = PORTION;
      this.fill();
    });
    const frame = element("div", "frame");
    const hint = element("p", "hint", "wider than the page: scroll →");
    hint.setAttribute("aria-hidden", "true");
    this.region = element("div", "scroll tall");
    this.region.setAttribute("role", "region");
    this.region.setAttribute("aria-label", `${title}: rows`);
    frame.append(hint, this.region);
    this.table = element("table", "sortable");
    this.region.append(this.table);
    this.more = element("button", "further");
    this.more.type = "button";
    this.more.addEventListener("click", () => {
      this.portion = Infinity;
      this.fill();
    });
    this.shared = element("div");
    holder.append(this.shared, this.search, frame, this.more);
    SHARED.watch(this.region);
  }

  show(pool, made, rows) {
    this.pool = pool;
    this.made = made;
    this.rows = rows;
    this.columns = made.columns.filter((each) => !each.place);
    this.below = made.columns.filter((each) => each.place === "sentence");
    this.search.hidden = rows.length < SEARCHED_FROM && !this.words;
    this.tellShared();
    this.head();
    this.fill();
  }

  // A text that many rows have alike stands once above them.
  tellShared() {
    const told = [];
    for (const column of this.made.columns.filter((each) => each.place === "shared")) {
      const values = this.pool.column(column.text);
      const counts = new Map();
      for (const row of this.rows) if (values[row] !== null) counts.set(values[row], (counts.get(values[row]) || 0) + 1);
      for (const [text, n] of counts) {
        const who = n === this.rows.length ? "each" : n + " of " + this.rows.length;
        told.push(element("p", "advice", column.title + " " + who + ": " + text));
      }
    }
    this.shared.replaceChildren(...told);
  }

  head() {
    this.table.classList.toggle("many", this.columns.length > 12);
    const row = element("tr");
    this.columns.forEach((column, place) => {
      const heading = element("th", column.style);
      heading.scope = "col";
      if (column.note) heading.title = column.note;
      const button = element("button", "", column.title);
      button.type = "button";
      button.addEventListener("click", () => this.sort(place));
      heading.append(button);
      row.append(heading);
    });
    const head = element("thead");
    head.append(row);
    this.table.replaceChildren(head);
    this.headings = Array.from(row.children);
    this.markHeadings();
  }

  markHeadings() {
    this.headings.forEach((heading, place) => {
      if (this.sorted && this.sorted.place === place) {
        heading.setAttribute("aria-sort", this.sorted.descending ? "descending" : "ascending");
      } else heading.removeAttribute("aria-sort");
    });
  }

  sort(place) {
    const again = this.sorted && this.sorted.place === place;
    this.sorted = { place, descending: again && !this.sorted.descending };
    this.markHeadings();
    this.fill();
  }

  ordered(rows) {
    if (!this.sorted) return rows;
    const column = this.columns[this.sorted.place];
    const values = this.pool.column(column.order || column.text);
    const sign = this.sorted.descending ? -1 : 1;
    return rows.slice().sort((a, b) => {
      const [left, right] = [values[a], values[b]];
      if (left === null || right === null) return (left === null) - (right === null);
      return sign * SHARED.compare(left, right);
    });
  }

  found() {
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return this.rows;
    const texts = this.made.columns.map((column) => this.pool.column(column.text));
    return this.rows.filter((row) => {
      const text = texts.map((values) => values[row] ?? "").join("\n").toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  fill() {
    const { beyond } = this.made;
    if (beyond && (this.sorted || this.words.trim() || this.portion !== PORTION)) {
      whole();
      return;
    }
    const found = this.ordered(this.found());
    const most = this.made.most || Infinity;
    const shown = found.slice(0, Math.min(this.portion, most));
    this.table.querySelectorAll("tbody").forEach((body) => body.remove());
    this.table.append(...shown.map((row) => this.body(row)));
    this.told.textContent = this.words.trim() ? number(found.length) + " of " + number(this.rows.length) : "";
    const left = Math.min(found.length + beyond, most) - shown.length;
    this.more.hidden = left <= 0;
    this.more.textContent = "Show " + number(left) + " more";
    this.table.querySelectorAll(".long").forEach(SHARED.shorten);
  }

  body(row) {
    const body = element("tbody");
    const line = element("tr");
    line.append(...this.columns.map((column) => this.cell(column, row)));
    body.append(line);
    for (const column of this.below) {
      const text = this.pool.column(column.text)[row];
      if (text === null) continue;
      const words = element("tr", "words");
      const cell = element("td");
      cell.colSpan = this.columns.length;
      cell.append(long(element("div", "said"), text, LONG.sentence));
      words.append(cell);
      body.append(words);
    }
    return body;
  }

  cell(column, row) {
    const text = this.pool.column(column.text)[row] ?? "–";
    const cell = element("td", column.style);
    if (column.order) cell.dataset.v = this.pool.column(column.order)[row] ?? "";
    const look = column.look && this.pool.column(column.look)[row];
    if (look) {
      const known = KNOWN.looks[KNOWN.verdicts[look]];
      const verdict = element("span", "verdict " + known.name);
      const glyph = element("i", "", known.glyph);
      glyph.setAttribute("aria-hidden", "true");
      verdict.append(glyph, "\u00a0" + text);
      cell.append(verdict);
    } else if (column.page && this.pool.column(column.page)[row]) {
      const link = element("a");
      link.href = this.pool.column(column.page)[row];
      cell.append(long(link, text, LONG.name));
    } else if (column.leads_to && text !== "–") {
      const link = element("a");
      link.href = leadingTo(column.leads_to, text);
      cell.append(long(link, text, LONG.name));
    } else long(cell, text, column.style === "m" ? LONG.name : LONG.other);
    return cell;
  }
}

// Where a name leads: to the page where it can be chosen, with all else that was chosen.
function leadingTo(key, value) {
  const state = new Map(page.choices.state);
  // on the same page one name after the other narrows it
  if (page.described.leadsTo !== page.described.files[page.described.id]) {
    for (const each of page.described.leadsToKeys) state.delete(each);
  }
  state.set(key, value);
  return address(page.described.leadsTo, state);
}

function long(holder, text, letters) {
  if (text.length <= letters) holder.textContent = text;
  else holder.append(element("div", "long", text));
  return holder;
}

function number(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}
