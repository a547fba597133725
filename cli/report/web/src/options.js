// Which to take: one point per option, time against cost (or energy, or carbon), with the Pareto front
// joined, and the same as a table below. A selection in one is marked in the other.
import { axisX, axisY, dot, gridX, gridY, line, ruleX, ruleY } from "@observablehq/plot";
import { chart } from "./chart.js";
import { el, section } from "./dom.js";
import { axisUnit, count, percent, quantity, text, words } from "./format.js";

const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye"];
const AXES = { cost: "USD", device_time: "s", memory: "B", energy: "J", carbon: "gCO2e" };

/// A plan in words, without the keys that need no mention.
function planText(plan, unsaid = new Set()) {
  if (typeof plan === "string") return plan;
  if (!plan || typeof plan !== "object") return "";
  const shown = [];
  for (const [key, value] of Object.entries(plan)) {
    if (unsaid.has(key)) continue;
    if (["data", "tensor", "pipeline", "context", "expert", "interleave"].includes(key)) {
      if (Number(value) > 1) shown.push(`${key} ${value}`);
    } else if (key === "zero") {
      if (value) shown.push(`ZeRO-${value}`);
    } else if (key === "sequence_parallel") {
      if (value) shown.push("sequence parallel");
    } else if (key === "schedule") {
      if (Number(plan.pipeline) > 1) shown.push(String(value));
    } else if (key === "microbatch") shown.push(`microbatch ${value}`);
    else if (key === "recompute" && value !== "none") shown.push(`${value} recomputation`);
    else if (key === "offload" && value !== "none") shown.push(`${value} offloaded`);
    else if (key === "placement") shown.push(String(value).replaceAll("_", " "));
    else if (unsaid.size && value !== "none" && !["split", "synchronization", "expert_tensor"].includes(key)) shown.push(`${key.replaceAll("_", " ")} ${value}`);
  }
  return shown.join(", ") || (unsaid.size ? "–" : "one rank");
}
/// Keys on which all plans agree: they are shown once.
function agreed(plans) {
  const objects = plans.filter((p) => p && typeof p === "object");
  if (objects.length < 2) return new Set();
  return new Set(Object.keys(objects[0]).filter((key) => objects.every((p) => JSON.stringify(p[key]) === JSON.stringify(objects[0][key]))));
}
/// The plan of an option, with the flags of a server.
const settings = (o) => (o.flags && typeof o.plan === "object" ? { ...o.plan, ...o.flags } : o.plan);
/// Device-seconds per token, from tokens per second and device.
const perToken = (rate) => (rate?.value > 0 ? { value: 1 / rate.value, ...(rate.low > 0 ? { low: 1 / rate.high, high: 1 / rate.low } : {}), unit: "s" } : undefined);
const q = (...candidates) => candidates.find((c) => c && typeof c.value === "number");

/// The options of any command that has some, in one shape.
function optionsOf(d) {
  const list = d.options ?? d.best;
  if (!Array.isArray(list) || !list.length) return null;
  const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);
  const key = (o) => JSON.stringify([o.provider, o.region, o.market, o.instance, o.count, o.plan, o.flags]);
  const front = Array.isArray(d.pareto) ? d.pareto : [];
  const all = [...list];
  // The front may point at options, repeat them, or hold some that are not among the best.
  const indices = new Set();
  for (const p of front) {
    if (typeof p === "number") indices.add(p);
    else if (p && typeof p === "object") {
      let i = all.findIndex((o) => same(o, p) || (p.plan !== undefined && key(o) === key(p)));
      if (i < 0) i = all.push(p) - 1;
      indices.add(i);
    }
  }
  const common = d.command === "plan" ? agreed(all.map(settings)) : new Set();
  const alike = common.size ? planText(Object.fromEntries(Object.entries(settings(all[0])).filter(([key]) => common.has(key)))) : "";
  const shared = alike === "one rank" ? "" : alike;
  return all.map((o, id) => ({
    shared, id, front: indices.has(id), provider: o.provider ?? "", place: [o.provider, o.region, o.market === "spot" ? "spot" : ""].filter(Boolean).join(" "), instance: o.instance ?? "", count: o.count ?? null,
    plan: planText(settings(o), common), time: q(o.time_to_target, o.to_target?.time, o.step_time, o.mean_tpot), cost: q(o.cost_to_target, o.to_target?.cost, o.cost_per_step, o.cost),
    energy: q(o.energy, o.to_target?.energy, o.energy_per_step), carbon: q(o.carbon, o.to_target?.carbon, o.carbon_per_step),
    memory: q(o.memory_per_device, o.memory), device_time: perToken(o.tokens_per_s_per_device), gpus: o.gpus ?? o.devices ?? o.job?.ranks ?? list[0].job?.ranks ?? 1,
    note: o.meets === false ? "misses a limit" : "",
    stalls: Object.entries(o.stalls ?? {}).filter(([, stall]) => stall?.share >= 0.005).map(([name, stall]) => `${words(name)} ${percent(stall.share, 0)}`).join(", "),
  }));
}

export function options({ document: d }) {
  const all = optionsOf(d);
  if (!all) return null;
  const perStep = !all.some((o, i) => (d.options ?? d.best)[i]?.time_to_target || (d.options ?? d.best)[i]?.to_target);
  const serves = perStep && (d.options ?? d.best).some((o) => o.mean_tpot);
  const timeName = serves ? "time per output token" : perStep ? "step time" : "time to the target";
  const providers = [...new Set(all.map((o) => o.provider))];
  const look = (o) => providers.indexOf(o.provider) % SYMBOLS.length;
  const axes = Object.keys(AXES).filter((axis) => all.filter((o) => o[axis]).length > 0);
  let axis = axes[0], chosen = null, sort = { by: null, down: false }, filter = "", onlyFront = false;
  const picture = el("div"), body = el("tbody"), seen = el("output.quiet"), head = el("tr");
  const shown = () => all.filter((o) => (!onlyFront || o.front) && (!filter || `${o.place} ${o.instance} ${o.count ?? ""} ${o.plan}`.toLowerCase().includes(filter)));
  const name = (o) => [o.count ? `${count(o.count)} ×` : "", o.instance, o.plan].filter(Boolean).join(" ");

  function paint() {
    if (!axis) return;
    const points = shown().filter((o) => o.time && o[axis]);
    if (!points.length) return picture.replaceChildren(el("p.quiet", {}, "No option matches."));
    const units = Object.fromEntries([["time", "s"], [axis, AXES[axis]]].map(([a, unit]) => [a, axisUnit(points.map((o) => o[a].value), unit)]));
    const value = (a, end = "value") => (o) => (o[a][end] ?? o[a].value) / units[a][0];
    // The Pareto front of the shown options.
    const front = [...points].sort((a, b) => a.time.value - b.time.value || a[axis].value - b[axis].value)
      .reduce((kept, o) => (kept.length && kept.at(-1)[axis].value <= o[axis].value ? kept : [...kept, o]), []);
    const most = Math.max(1, ...all.map((o) => Number(o.gpus) || 1));
    const r = (o) => 4 + 9 * Math.sqrt((Number(o.gpus) || 1) / most);
    // Logarithmic where a linear axis would crowd most of them.
    const scale = (values) => Math.max(...values) / Math.min(...values) > 20 ? { type: "log" } : { type: "linear", nice: true };
    picture.replaceChildren(chart(`${count(points.length)} options: time against ${axis}`, (width) => ({
      height: 360, marginLeft: 64, marginTop: 28, marginBottom: 46, inset: 16, r: { type: "identity" }, symbol: { type: "identity" },
      x: scale(points.map(value("time"))), y: scale(points.map(value(axis))),
      marks: [
        gridX({ stroke: "var(--line)", strokeOpacity: 1, ticks: width / 130 }), gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
        ...(points.length <= 60 ? [ruleY(points, { y: value(axis), x1: value("time", "low"), x2: value("time", "high"), stroke: "var(--quiet)", strokeOpacity: 0.5 }),
          ruleX(points, { x: value("time"), y1: value(axis, "low"), y2: value(axis, "high"), stroke: "var(--quiet)", strokeOpacity: 0.5 })] : []),
        line(front, { x: value("time"), y: value(axis), stroke: "var(--ink)", strokeWidth: 1.25, strokeDasharray: "4 3" }),
        dot(points, { x: value("time"), y: value(axis), r, symbol: (o) => SYMBOLS[look(o)], fill: (o) => `var(--provider-${look(o)})`,
          fillOpacity: 0.75, stroke: (o) => (front.includes(o) ? "var(--ink)" : `var(--provider-${look(o)})`), strokeWidth: 1.25, className: "points" }),
        axisX({ label: `${timeName} (${units.time[1]})`, ticks: Math.max(3, width / 130), labelOffset: 42 }),
        axisY({ label: `${perStep && axis !== "memory" && !serves ? `${words(axis)} per step` : serves && axis === "device_time" ? "GPU time per output token" : words(axis)} (${units[axis][1]})`, ticks: 5 }),
      ],
    }), (svg) => {
      svg.setAttribute("role", "group");
      const marks = svg.querySelectorAll("g[aria-label=dot] path, g[aria-label=dot] circle, g.points path, g.points circle");
      [...new Set(marks)].forEach((mark) => {
        const o = points[mark.__data__];
        if (!o) return;
        mark.setAttribute("tabindex", "0");
        mark.setAttribute("role", "button");
        mark.setAttribute("data-option", o.id);
        mark.setAttribute("aria-label", `${name(o)}: ${quantity(o.time)}, ${quantity(o[axis])}`);
        const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
        title.textContent = `${name(o)}\n${quantity(o.time)}, ${quantity(o[axis])}`;
        mark.append(title);
        mark.addEventListener("click", () => choose(o.id, true));
        mark.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          choose(o.id, true);
        });
      });
      requestAnimationFrame(mark);
    }));
  }
  function mark() {
    for (const element of picture.querySelectorAll("[data-option]")) {
      const is = Number(element.dataset.option) === chosen;
      element.classList.toggle("chosen", is);
      element.setAttribute("aria-pressed", String(is));
      if (is) element.parentNode.append(element);
    }
    for (const row of body.children) {
      const is = Number(row.dataset.option) === chosen;
      row.classList.toggle("chosen", is);
      row.setAttribute("aria-selected", String(is));
    }
  }
  function choose(id, scroll = false) {
    chosen = chosen === id ? null : id;
    mark();
    if (scroll && chosen !== null) body.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  const columns = [
    { key: "front", name: "", title: "on the Pareto front", cell: (o) => (o.front ? "●" : ""), of: (o) => (o.front ? 0 : 1) },
    { key: "provider", name: "provider", cell: (o) => el("span.whole", {}, el(`span.shape.shape-${look(o)}`, { style: { color: `var(--provider-${look(o)})` }, "aria-hidden": "true" }), o.place), of: (o) => o.place },
    { key: "instance", name: "instance", cell: (o) => o.instance, of: (o) => o.instance },
    { key: "count", name: "count", right: true, cell: (o) => (o.count === null ? "" : count(o.count)), of: (o) => o.count ?? 0 },
    { key: "plan", name: "plan", cell: (o) => o.plan, of: (o) => o.plan },
    ...[["time", perStep ? timeName : "time"], ["cost", "cost"], ["device_time", "GPU time per token"], ["energy", "energy"], ["carbon", "carbon"], ["memory", "memory"]].map(([key, title]) => ({
      key, name: title, right: true, of: (o) => o[key]?.value ?? Infinity,
      cell: (o) => (o[key] ? el("span", { title: o[key].low !== undefined ? `${text(o[key].low, o[key].unit)} – ${text(o[key].high, o[key].unit)}` : undefined }, quantity(o[key])) : "–") })),
    { key: "stalls", name: "waits for", cell: (o) => o.stalls, of: (o) => o.stalls },
    { key: "note", name: "limits", cell: (o) => el("b.bad", {}, o.note), of: (o) => o.note },
  ].filter((c) => (c.key === "front" ? all.some((o) => o.front) : all.some((o) => c.of(o) !== "" && c.of(o) !== Infinity && (c.key !== "count" || o.count !== null))));
  function rows() {
    const by = columns.find((c) => c.key === sort.by);
    const list = shown().sort((a, b) => {
      // In the given order, the best first, until a heading is selected.
      const x = by?.of(a), y = by?.of(b);
      return (x < y ? -1 : x > y ? 1 : a.id - b.id) * (sort.down ? -1 : 1);
    });
    head.replaceChildren(...columns.map((c) => el(c.right ? "th.right" : "th", { scope: "col", "aria-sort": sort.by === c.key ? (sort.down ? "descending" : "ascending") : "none" },
      el("button", { type: "button", title: c.title ?? `sort by ${c.name}`, onclick: () => {
        sort = { by: c.key, down: sort.by === c.key && !sort.down };
        rows();
        head.children[columns.indexOf(c)].firstChild.focus();
      } }, c.name || "●", sort.by === c.key ? (sort.down ? " ▾" : " ▴") : ""))));
    body.replaceChildren(...list.map((o) => el("tr", { tabindex: 0, "data-option": o.id, "aria-selected": "false",
      onclick: () => choose(o.id),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose(o.id);
        } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          event.preventDefault();
          (event.key === "ArrowDown" ? event.currentTarget.nextElementSibling : event.currentTarget.previousElementSibling)?.focus();
        }
      } }, columns.map((c) => el(c.right ? "td.right" : "td", {}, c.cell(o))))));
    seen.textContent = list.length < all.length ? `${count(list.length)} of ${count(all.length)}` : `${count(all.length)} options`;
    mark();
  }
  const update = () => {
    rows();
    paint();
  };
  update();
  return section("options", "Which should I take?",
    `${timeName[0].toUpperCase()}${timeName.slice(1)}${axis ? ` against ${words(axis)}` : ""}. The line joins the Pareto front.${all.some((o) => Number(o.gpus) !== Number(all[0].gpus)) ? " Areas show the number of devices." : ""}${all[0].shared ? ` The same for all: ${all[0].shared}.` : ""}`,
    el("div.tools", {},
      axes.length > 1 ? el("fieldset", {}, el("legend.unseen", {}, "against"), "against ", axes.map((a) => el("label", {}, el("input", { type: "radio", name: "axis", value: a, checked: a === axis, onchange: () => {
        axis = a;
        paint();
      } }), ` ${words(a)} `))) : null,
      el("span.spring", {}),
      all.some((o) => o.front) ? el("label", {}, el("input", { type: "checkbox", onchange: (e) => {
        onlyFront = e.target.checked;
        update();
      } }), " unbeaten only ") : null,
      el("label", { for: "options-filter" }, "filter "), el("input", { type: "search", id: "options-filter", placeholder: "instance, plan …", oninput: (e) => {
        filter = e.target.value.trim().toLowerCase();
        update();
      } }), seen),
    axis ? el("p.legend", {}, providers.length > 1 ? providers.map((p, i) => el("span", {}, el(`span.shape.shape-${i % SYMBOLS.length}`, { style: { color: `var(--provider-${i % SYMBOLS.length})` }, "aria-hidden": "true" }), p || "–")) : null) : null,
    picture,
    el("div.scroll.options", { tabindex: 0, role: "region", "aria-label": "Options" },
      el("table", { "aria-label": "Options; choosing a row marks its point" }, el("thead", {}, head), body)),
    d.why ? why(d.why) : null);
}

function why(reason) {
  const lines = Array.isArray(reason) ? reason : typeof reason === "string" ? [reason] : Object.entries(reason).map(([k, v]) => `${k}: ${typeof v === "object" ? quantity(v) : v}`);
  return el("div", {}, el("h3", {}, "Why the first option"), el("ul", {}, lines.map((l) => el("li", {}, typeof l === "string" ? l : Object.values(l).filter((v) => typeof v !== "object").join(": ")))));
}
