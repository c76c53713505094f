// Rows as the files beside the page hold them: columns decoded when they are first asked for, groups added up.
class Pool {
  constructor(packed) {
    this.packed = packed;
    this.decoded = new Map();
    this.size = packed.n;
  }

  column(name) {
    if (!this.decoded.has(name)) {
      this.decoded.set(name, unpacked(this.packed.columns[name]));
    }
    return this.decoded.get(name);
  }

  // The column that a choice is about; null where these rows do not have it, or none of them says it.
  chosenBy(column) {
    const name = this.packed.choices[column];
    if (name === undefined) return null;
    const values = this.column(name);
    return values.some((value) => value !== null) ? values : null;
  }
}

function unpacked(held) {
  if (held.v) return held.v;
  if (held.n) return countsOf(held.n);
  if (held.i) return countsOf(held.i).map((place) => held.d[place]);
  // seven digits are known of each
  return Array.from(new Float32Array(bytesOf(held.f)), (value) => (Number.isNaN(value) ? null : Number(value.toPrecision(7))));
}

const WIDTHS = { 1: [Uint8Array, 0xff], 2: [Uint16Array, 0xffff], 4: [Uint32Array, 0xffffffff] };

function countsOf(held) {
  if (Array.isArray(held)) return held;
  if (held.to !== undefined) return Array.from({ length: held.to }, (_, place) => place);
  if (held.r) {
    const found = [];
    for (let at = 0; at < held.r.length; at += 2) for (let n = held.r[at + 1]; n > 0; n -= 1) found.push(held.r[at]);
    return found;
  }
  const [Numbers, unknown] = WIDTHS[held.w];
  return Array.from(new Numbers(bytesOf(held.b)), (value) => (value === unknown ? null : value));
}

function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes.buffer;
}

// Places of rows stand packed wherever a panel says which rows it shows.
function withPlaces(made) {
  for (const each of [made, ...(made.figures || []), ...(made.tiles || [])]) each.rows = each.rows ? countsOf(each.rows) : made.rows;
  return made;
}

// The groups of some rows, as an index makes them: the first, or the largest, come first; without a name is none.
function grouped(pool, rows, groups) {
  const by = Object.entries(groups.by).map(([name, column]) => [name, pool.column(column)]);
  const over = groups.over && pool.column(groups.over[1]);
  const first = groups.first && pool.column(groups.first);
  const metrics = groups.metrics.map((each) => ({ ...each, values: each.from ? pool.column(each.from) : null }));
  const found = new Map();
  for (const row of rows) {
    const keys = by.map(([, values]) => values[row]);
    if (keys.includes(null)) continue;
    const key = JSON.stringify(keys);
    if (!found.has(key)) found.set(key, { keys, rows: [], first: 0 });
    const group = found.get(key);
    group.rows.push(row);
    if (first) group.first += first[row];
  }
  const totalOf = (name, group) => measured(metrics.find((each) => each.name === name), group.rows) ?? -Infinity;
  let wanted = Array.from(found.values());
  if (first) wanted = wanted.filter((group) => group.first > 0);
  if (groups.weight) wanted = wanted.filter((group) => totalOf(groups.weight, group) > 0);
  const made = (group, chosen) => {
    const record = {};
    by.forEach(([name], place) => { record[name] = group.keys[place]; });
    for (const metric of metrics) record[metric.name] = measured(metric, chosen);
    return record;
  };
  if (groups.largest) {
    const totals = new Map();
    for (const group of wanted) totals.set(group.keys[0], (totals.get(group.keys[0]) ?? 0) + totalOf(groups.largest, group));
    wanted.sort((a, b) => totals.get(b.keys[0]) - totals.get(a.keys[0]));
  } else if (over) wanted.sort((a, b) => b.first - a.first || b.rows.length - a.rows.length);
  const names = Array.from(new Set(wanted.map((group) => group.keys[0])));
  const count = names.length;
  const kept = new Set(groups.most ? names.slice(0, groups.most) : names);
  wanted = wanted.filter((group) => kept.has(group.keys[0]));
  if (!over) return { count, shown: kept.size, records: wanted.map((group) => made(group, group.rows)) };
  const records = [];
  for (const group of wanted) {
    const days = new Map();
    for (const row of group.rows) {
      const day = over[row] === null ? null : over[row].slice(0, 10);
      if (day === null) continue;
      if (!days.has(day)) days.set(day, []);
      days.get(day).push(row);
    }
    for (const day of Array.from(days.keys()).sort()) {
      records.push({ ...made(group, days.get(day)), [groups.over[0]]: day });
    }
  }
  return { count, shown: kept.size, records };
}

function measured(metric, rows) {
  if (metric.how === "count") return rows.length;
  const known = rows.map((row) => metric.values[row]).filter((value) => value !== null);
  if (!known.length) return null;
  switch (metric.how) {
    case "max": return known.reduce((a, b) => (b > a ? b : a));
    case "min": return known.reduce((a, b) => (b < a ? b : a));
    case "mean": return known.reduce((a, b) => a + b, 0) / known.length;
    default: return known.reduce((a, b) => a + b, 0);
  }
}
