"use strict";
// A chart in a page: Vega-Lite is compiled and drawn as SVG; Vega interprets expressions and evaluates no code.
window.vegaEmbed = (function () {
  const { View, parse, compile, expressionInterpreter } = window.vegaParts;
  const NEAR = 10;

  function cell(style, text) {
    const made = document.createElement("td");
    made.className = style;
    made.textContent = text;
    return made;
  }

  function tip() {
    const known = document.getElementById("vg-tooltip-element");
    if (known) return known;
    const made = document.createElement("div");
    made.id = "vg-tooltip-element";
    document.body.append(made);
    return made;
  }

  function tooltip(_handler, event, _item, value) {
    const shown = tip();
    shown.classList.toggle("visible", Boolean(value));
    if (!value) return;
    const table = document.createElement("table");
    for (const [key, text] of Object.entries(value)) {
      if (text === undefined) continue;
      const row = table.insertRow();
      row.append(cell("key", key), cell("value", text));
    }
    shown.replaceChildren(table);
    const place = (at, size, room) => (at + NEAR + size > room ? Math.max(0, at - NEAR - size) : at + NEAR) + "px";
    shown.style.left = place(event.clientX, shown.offsetWidth, window.innerWidth);
    shown.style.top = place(event.clientY, shown.offsetHeight, window.innerHeight);
  }

  return async function (element, spec, locale) {
    const compiled = compile(spec).spec;
    const view = new View(parse(compiled, {}, { ast: true }), {
      expr: expressionInterpreter,
      renderer: "svg",
      ...(locale ? { locale: { number: locale } } : {}),
    });
    view.tooltip(tooltip);
    element.classList.add("vega-embed");
    element.replaceChildren();
    await view.initialize(element).runAsync();
    return { view, vgSpec: compiled };
  };
})();
