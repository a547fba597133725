// The page of a command without a layout of its own: the blocks of its document, in their order. A table
// with an axis is drawn as lines; columns with intervals, and columns from when to when, as bars.
import { areaY, axisX, axisY, dot, gridY, line } from "@observablehq/plot";
import { chart } from "./chart.js";
import { el, section, table } from "./dom.js";
import { bar } from "./figures.js";
import { axisUnit, percent, text } from "./format.js";
import { colorOf, swatch } from "./meaning.js";

const isNumber = (cell) => typeof cell === "object" && typeof cell.value === "number";
const textOf = (cell) => (typeof cell === "object" ? cell.text : cell);
const known = (cell) => isNumber(cell) && cell.low !== undefined && cell.low < cell.high;
const distinct = (values) => [...new Set(values)];
const id = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "result";

/// One quantity against the axis: a line for each combination of the texts before it.
function lines(t, x, y) {
  const names = t.columns.map((c, i) => i).filter((i) => i < x && t.rows.some((r) => !isNumber(r[i])));
  const points = t.rows.filter((r) => isNumber(r[x]) && isNumber(r[y]))
    .map((r) => ({ series: names.map((i) => textOf(r[i])).join(", "), x: r[x].value, at: textOf(r[x]), ...r[y] }));
  const series = distinct(points.map((p) => p.series));
  if (series.length > 7 || distinct(points.map((p) => p.x)).length < 3 || distinct(points.map((p) => p.unit)).length > 1) return null;
  const title = (i) => t.columns[i].name.replace(/ \([^)]*\)$/, "");
  const wide = (values) => Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 50;
  const logX = wide(points.map((p) => p.x)), logY = wide(points.map((p) => p.value));
  const ofX = t.rows.find((r) => isNumber(r[x]))[x].unit, ofY = points[0].unit;
  const [byX, unitX] = axisUnit(points.map((p) => p.x), ofX), [byY, unitY] = axisUnit(points.map((p) => p.value), ofY);
  const named = (name, unit) => (unit ? `${name} (${unit})` : name);
  // Over several magnitudes, each tick has its own unit.
  const magnitudes = (unit) => ({ type: "log", base: unit === "B" || !unit ? 2 : 10 });
  const tick = (by, unit) => (n) => (unit === "B" || !unit || /^[125]e/.test(n.toExponential(0)) ? text(n * by, unit).replace(/\.0+(?!\d)/, "") : "");
  const color = (p) => `var(--provider-${series.indexOf(p.series)})`;
  const ends = series.map((s) => points.filter((p) => p.series === s).at(-1));
  return [el("h3", {}, `${title(y)} by ${title(x)}`),
    series.length > 1 ? el("p.legend", {}, series.map((s) => el("span", {}, swatch(color({ series: s })), s))) : null,
    chart(`${title(y)} by ${title(x)}: ${ends.map((p) => `${p.series ? `${p.series}: ` : ""}${p.text} at ${p.at}`).join("; ")}`, (width) => ({
      height: 260, marginTop: 20, marginBottom: 44, x: logX ? { ...magnitudes(ofX), inset: 6 } : { nice: true, inset: 6 }, y: logY ? magnitudes(ofY) : { nice: true, zero: true },
      marks: [gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
        areaY(points.filter(known), { x: (p) => p.x / byX, y1: (p) => p.low / byY, y2: (p) => p.high / byY, z: "series", fill: color, fillOpacity: 0.16 }),
        line(points, { x: (p) => p.x / byX, y: (p) => p.value / byY, z: "series", stroke: color, strokeWidth: 1.5 }),
        dot(points, { x: (p) => p.x / byX, y: (p) => p.value / byY, r: 2.5, fill: color, title: (p) => `${p.series ? `${p.series}, ` : ""}${p.at}: ${p.range ?? p.text}` }),
        axisX({ label: named(title(x), logX ? "" : unitX), labelOffset: 40, ticks: Math.max(3, width / 130), ...(logX && { tickFormat: tick(byX, ofX) }) }),
        axisY({ label: named(title(y), logY ? "" : unitY), ticks: 5, ...(logY && { tickFormat: tick(byY, ofY) }) })],
    }))];
}

/// The end of the scale on which a cell with an interval is drawn: that of its unit in the table, or in
/// its row where a column has several units.
function scaleOf(t) {
  const mixed = t.columns.some((c, i) => distinct(t.rows.map((r) => r[i]).filter(known).map((cell) => cell.unit)).length > 1);
  const most = (rows, unit) => Math.max(...rows.flat().filter((cell) => isNumber(cell) && cell.unit === unit).map((cell) => cell.high ?? cell.value));
  const whole = Object.fromEntries(distinct(t.rows.flat().filter(known).map((cell) => cell.unit)).map((unit) => [unit, most(t.rows, unit)]));
  return (row, cell) => (mixed ? most([row], cell.unit) : whole[cell.unit]);
}

function tableOf(t, name, withBars) {
  const end = scaleOf(t), columns = t.columns.map((c, i) => ({
    name: c.name, right: c.right,
    cell: (r) => (withBars && known(r[i]) ? el("span", { title: r[i].range }, r[i].text, bar(r[i], undefined, end(r, r[i]))) : textOf(r[i])),
  }));
  const spans = t.columns.flatMap((c, i) => (c.look === "span" ? [i] : []));
  if (spans.length === 2) {
    const [from, to] = spans, all = t.rows.filter((r) => isNumber(r[from]) && isNumber(r[to])).flatMap((r) => [r[from].value, r[to].value]);
    const least = Math.min(...all), whole = Math.max(...all) - least || 1;
    columns.splice(to + 1, 0, { name: "when", cell: (r) => el("span.span", { "aria-hidden": "true" }, isNumber(r[from]) && isNumber(r[to]) ? el("i", {
      style: { left: `${(r[from].value - least) / whole * 100}%`, width: `max(2px, ${(r[to].value - r[from].value) / whole * 100}%)` } }) : null) });
  }
  const shown = table(name, columns, t.rows);
  shown.classList.add("rows");
  return [shown, t.more ? el("p.quiet", {}, `${t.more} more rows; --format csv has all.`) : null];
}

function barsOf(parts) {
  const total = parts.reduce((sum, p) => sum + p.value, 0);
  let from = 0;
  return el("ul.waterfall", {}, parts.filter((p) => p.value > 0).map((p) => {
    const left = from / total * 100;
    from += p.value;
    return el("li", {}, el("span.label", {}, swatch(colorOf(p.key)), p.label),
      el("span.track", { "aria-hidden": "true" }, el("i", { style: { left: `${left}%`, width: `max(1px, ${p.value / total * 100}%)`, background: colorOf(p.key) } })),
      el("span.time", { title: p.range }, p.text), el("span.share", {}, percent(p.value / total)));
  }));
}

const fieldsOf = (fields) => el("dl.reproduce", {}, fields.map((f) => [el("dt", {}, f.label), el("dd", {}, f.range ?? f.text)]));

const draw = {
  line: (b) => el("p", {}, b.text),
  fields: (b) => fieldsOf(b.fields),
  bars: (b) => barsOf(b.parts),
  list: (b) => el("ul.notes", {}, b.items.map((item) => el("li", {}, item))),
  table: (b) => {
    const x = b.columns.findIndex((c) => c.look === "axis");
    const drawn = x < 0 ? [] : b.columns.map((c, y) => (y > x && b.rows.some((r) => isNumber(r[y]) && r[y].unit) && lines(b, x, y))).filter(Boolean);
    return [drawn.slice(0, 3), tableOf(b, b.title || "Result", !drawn.length)];
  },
};

/// The headline, up to four quantities as [{name, q, plain}], what follows them, and the sections.
export function shown({ answer, document: d, shown: blocks = [] }) {
  const rest = [...blocks];
  const headline = answer || (rest[0]?.kind === "line" ? rest.shift().text : "");
  const first = rest.findIndex((b) => b.kind === "fields" && !b.title);
  const figures = first < 0 ? [] : rest[first].fields.filter((f) => isNumber(f) && f.unit).slice(0, 4);
  if (first >= 0) rest[first] = { ...rest[first], fields: rest[first].fields.filter((f) => !figures.includes(f)) };
  const sections = [], lead = [];
  for (const b of rest.filter((b) => b.kind !== "fields" || b.fields.length)) {
    // Blocks without a title belong to the one before.
    if (b.title) sections.push({ title: b.title, parts: [] });
    (sections.at(-1)?.parts ?? lead).push(draw[b.kind](b));
  }
  const used = new Map();
  return {
    headline, lead,
    figures: figures.map((f) => ({ name: f.label, q: f, plain: f.text.split(/\s(?=\S+$)/) })),
    sections: sections.map((s) => {
      const name = id(s.title), count = (used.get(name) ?? 0) + 1;
      used.set(name, count);
      return { title: s.title, element: section(`shown-${name}${count > 1 ? `-${count}` : ""}`, s.title, null, s.parts) };
    }),
  };
}
