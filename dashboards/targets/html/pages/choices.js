// What a reader chose: it stands behind the # of the address, and goes along to the other pages.
const EVERY = "*";

class Choices {
  constructor(described, main, values, opened) {
    this.opened = opened;
    this.known = null;
    this.described = described;
    this.main = described.find((each) => each.key === main) || null;
    this.values = values;
    this.read();
  }

  read() {
    this.state = new Map(new URLSearchParams(location.hash.slice(1)));
  }

  // The file of rows that is wanted: at first that of the first view, which has its own options.
  get file() {
    return this.opened && !this.state.size ? this.opened : this.part;
  }

  // The number of a file of rows: that of the value of the main choice.
  get part() {
    if (!this.main) return 0;
    return Math.max(0, this.values.indexOf(this.state.get(this.main.key) ?? this.main.chosen));
  }

  // The value of a choice that rows are compared with; null where all are shown.
  value(choice, pools) {
    const said = this.state.get(choice.key);
    if (said === undefined) return this.untold(choice, pools);
    if (said === EVERY || said === "") return null;
    if (said === KNOWN.everything && !this.all(choice, pools).has(said)) return null;
    return said;
  }

  // One at a time, and nothing said: the first by rank, unless something else on the page was chosen.
  untold(choice, pools) {
    if (!choice.single) return null;
    const others = this.others().some((each) => each !== choice && this.state.get(each.key));
    if (others) return null;
    const names = sortedTexts(this.all(choice, pools));
    if (names.includes(choice.first)) return choice.first;
    return names.length ? names[0] : null;
  }

  others() {
    return this.described.filter((each) => each !== this.main);
  }

  all(choice, pools) {
    if (this.known) return new Set(this.known[choice.key]);
    const found = new Set();
    for (const name of choice.pools) {
      for (const value of pools[name].chosenBy(choice.column) || []) if (value !== null) found.add(value);
    }
    return found;
  }

  // The values that rows have which meet the other choices.
  options(choice, pools) {
    if (this.known) return sortedTexts(this.known[choice.key]);
    const found = new Set();
    for (const name of choice.pools) {
      const values = pools[name].chosenBy(choice.column);
      if (values === null) continue;
      for (const row of this.rows(pools[name], pools, choice)) if (values[row] !== null) found.add(values[row]);
    }
    return sortedTexts(found);
  }

  // The rows of a pool that meet the choices; of a choice that it knows nothing of no row does.
  rows(pool, pools, without) {
    if (this.known) return Array.from({ length: pool.packed.chosen }, (_, row) => row);
    const tests = [];
    for (const choice of this.others()) {
      const value = choice === without ? null : this.value(choice, pools);
      if (value === null) continue;
      const test = this.test(choice, value, pool, pools);
      if (test === null) return [];
      tests.push(test);
    }
    const found = [];
    for (let row = 0; row < pool.size; row += 1) {
      if (tests.every(([values, accepted]) => accepted.has(values[row]))) found.push(row);
    }
    return found;
  }

  // A column of a pool and the values of it that meet a choice. Rows that do not say it themselves, of which
  // queue they are but not of which site, are those of the names that others say it of.
  test(choice, value, pool, pools) {
    const own = pool.chosenBy(choice.column);
    if (own !== null) return [own, new Set([value])];
    for (const other of this.others()) {
      const names = pool.chosenBy(other.column);
      if (other === choice || names === null) continue;
      const accepted = new Set();
      for (const name of choice.pools) {
        const [said, named] = [pools[name].chosenBy(choice.column), pools[name].chosenBy(other.column)];
        if (said !== null && named !== null) said.forEach((each, row) => each === value && accepted.add(named[row]));
      }
      return [names, accepted];
    }
    return null;
  }

  // The titles of choices that are made and that a pool does not know.
  unknownTo(pool, pools) {
    if (this.known) return [];
    return this.others()
      .filter((choice) => {
        const value = this.value(choice, pools);
        return value !== null && this.test(choice, value, pool, pools) === null;
      })
      .map((choice) => choice.title);
  }

  choose(key, value) {
    if (value === undefined) this.state.delete(key);
    else this.state.set(key, value);
    const text = new URLSearchParams(Array.from(this.state)).toString();
    document.body.dataset.wanted = "chosen";
    history.pushState(null, "", location.pathname + location.search + (text && "#" + text));
    wanted();
  }

  clear() {
    for (const choice of this.others()) this.state.delete(choice.key);
    this.choose("", undefined);
  }
}

function sortedTexts(found) {
  return Array.from(found).sort((a, b) => SHARED.compare(String(a), String(b)));
}

function address(file, state) {
  const text = new URLSearchParams(Array.from(state)).toString();
  return text ? file + "#" + text : file;
}

// The form of all choices: made once, so that who is in it stays there; its options follow what is chosen.
class ChoicesForm {
  constructor(form, choices) {
    this.form = form;
    this.choices = choices;
    this.fields = new Map();
    for (const choice of choices.described) {
      const label = element("label", "choice");
      label.append(element("span", "", choice.title));
      const select = element("select");
      select.name = choice.key;
      const value = element("span", "value");
      label.append(select, value);
      form.append(label);
      this.fields.set(choice, select);
      select.addEventListener("change", () => this.chosen(choice, select.value));
    }
    this.reset = element("button", "reset", "Show all");
    this.reset.type = "button";
    this.reset.addEventListener("click", () => choices.clear());
    this.told = element("span", "told");
    this.told.setAttribute("role", "status");
    form.append(this.reset, this.told);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = !choices.described.length;
  }

  chosen(choice, value) {
    if (choice === this.choices.main && value === choice.chosen) this.choices.choose(choice.key, undefined);
    else if (value === EVERY && !choice.single) this.choices.choose(choice.key, undefined);
    else this.choices.choose(choice.key, value);
  }

  follow(pools) {
    let narrowed = false;
    for (const [choice, select] of this.fields) {
      if (choice === this.choices.main) {
        fill(select, this.choices.values.map((each) => [each, each ?? "none"]), this.choices.values[this.choices.part]);
        continue;
      }
      const value = this.choices.value(choice, pools);
      const options = this.choices.options(choice, pools);
      if (value !== null && !options.includes(value)) options.unshift(value);
      select.parentElement.hidden = !options.length;
      fill(select, [[EVERY, "all"], ...options.map((each) => [each, each])], value === null ? EVERY : value);
      const said = this.choices.state.get(choice.key);
      if (said !== undefined && said !== KNOWN.everything) narrowed = true;
    }
    this.reset.hidden = !narrowed;
  }
}

function fill(select, options, value) {
  const made = options.map(([key, text]) => {
    const option = element("option", "", shortened(text));
    option.value = key ?? "";
    option.selected = key === value;
    return option;
  });
  select.replaceChildren(...made);
  select.nextSibling.textContent = select.selectedOptions.length ? select.selectedOptions[0].textContent : "";
}

// A menu as wide as its longest entry would be wider than the page.
function shortened(text) {
  const letters = Array.from(String(text));
  return letters.length > 60 ? letters.slice(0, 59).join("") + "…" : letters.join("");
}

function element(name, style, text) {
  const made = document.createElement(name);
  if (style) made.className = style;
  if (text !== undefined) made.textContent = text;
  return made;
}
