// The four figures below the answer, each with its interval as a bar.
import { el } from "./dom.js";
import { interval, parts, quantity, signed } from "./format.js";

/// A scale from zero, the interval on it as a band, the value as a mark; a limit as a line.
export function bar(q, limit, end = Math.max(limit?.value ?? 0, q.high ?? q.value)) {
  const most = end * 1.06;
  if (!(most > 0)) return null;
  const at = (value) => `${(Math.max(0, value) / most * 100).toFixed(2)}%`;
  const low = q.low ?? q.value, high = q.high ?? q.value;
  return el("div.range", { "aria-hidden": "true" },
    el("i.fill", { style: { width: at(q.value) } }),
    el("i.band", { style: { left: at(low), width: `calc(${at(high)} - ${at(low)} + 1px)` } }),
    el("i.value", { style: { left: at(q.value) } }),
    limit ? el("i.limit", { style: { left: at(limit.value) } }) : null);
}

/// One figure; or two, `was` above it on one scale.
function card({ name, q, was, note, limit, plain }) {
  const [number, unit] = plain ?? parts(q.value, q.unit);
  const range = q ? interval(q) : "", end = was ? Math.max(was.high ?? was.value, q.high ?? q.value) : undefined;
  return el("div.figure", { role: "listitem" },
    el("div.name", {}, name),
    el("div.number", {}, number, unit ? el("small", {}, `\u00a0${unit}`) : null),
    was ? [el("div.note", {}, `baseline ${quantity(was)}${interval(was) ? `: ${interval(was)}` : ""}`), bar(was, undefined, end), el("div.note", {}, `candidate ${quantity(q)}${range ? `: ${range}` : ""}`)] : null,
    q && (limit || was || q.low !== undefined || !plain) ? bar(q, limit, end) : null,
    el("div.note", {}, [was ? "" : range, note].filter(Boolean).join(range && note && !was ? " · " : "")));
}

/// A small share, with two decimals.
const small = (share) => [(share * 100).toFixed(2), "%"];
const memoryCard = (m) => m && {
  name: "peak memory per device", q: m, limit: m.usable,
  note: m.usable ? `of ${quantity(m.usable)}: ${m.verdict ?? (m.fits ? "fits" : "does not fit")}` : "",
};
const throughputCard = (d) => d.tokens_per_s
  ? { name: "throughput", q: { ...d.tokens_per_s, unit: "tokens/s" }, plain: [parts(d.tokens_per_s.value, "")[0], "tokens/s"] }
  : d.throughput && { name: "throughput", q: { ...d.throughput, unit: d.command === "simulate" && d.job?.input ? "steps/s" : "samples/s" } };
const costCard = (d) => d.to_target?.cost
  ? { name: "cost to the target", q: d.to_target.cost, note: d.to_target.time ? `in ${quantity(d.to_target.time)}` : "" }
  : d.cost_per_step ? { name: "cost of a step", q: d.cost_per_step }
  : d.to_target?.time ? { name: "time to the target", q: d.to_target.time }
  : d.energy_per_step ? { name: "energy per step", q: d.energy_per_step, note: "devices only" } : null;

const rateCard = (d) => d.goodput_per_device ? { name: "requests/s per GPU within limits", q: d.goodput_per_device, plain: [parts(d.goodput_per_device.value, "")[0], "/s"] }
  : { name: "output tokens", q: d.throughput.tokens_per_s, plain: [parts(d.throughput.tokens_per_s.value, "")[0], "tokens/s"] };
/// Of an inference server.
const served = (d) => [{ name: "time to first token", q: d.ttft.mean }, { name: "time per output token", q: d.tpot.mean }, rateCard(d),
  d.cost_per_million_tokens ? { name: "cost per million tokens", q: d.cost_per_million_tokens } : memoryCard(d.memory_per_device)];
const of = {
  simulate: (d) => d.ttft ? served(d) : [{ name: "step time", q: d.step_time }, throughputCard(d), costCard(d), memoryCard(d.memory_per_device)],
  replay: (d) => [
    { name: "step, measured", q: d.step_time.measured },
    { name: "step, simulated", q: d.step_time.simulated },
    { name: "median error over steps", plain: small(d.error.median), note: `worst ${signed(d.error.worst)}` },
    { name: "unexplained delay", plain: small(d.residual_share), note: "of the recording" }],
  whatif: (d) => [
    { name: "step time with the edit", q: d.step_time },
    { name: "step time without it", q: d.baseline.simulated, note: `measured ${quantity(d.baseline.measured)}` },
    { name: "change", plain: [signed(d.change).replace("\u00a0%", ""), "%"], note: d.change < 0 ? "faster" : "slower" },
    { name: "median error of the replay", plain: small(d.error.median), note: `worst ${signed(d.error.worst)}` }],
  plan: (d) => (d.best?.[0] ? of.simulate({ ...d.best[0], command: "simulate" }) : []),
  recommend: (d) => {
    const best = d.options?.[0];
    if (!best) return [];
    if (best.ttft) return served(best);
    const found = [best.step_time && { name: "step time", q: best.step_time }, best.throughput && throughputCard({ ...best, command: "recommend" }),
      best.cost_to_target && { name: "cost to the target", q: best.cost_to_target, note: `in ${quantity(best.time_to_target)} (${interval(best.time_to_target)})` },
      memoryCard(best.memory_per_device)];
    const shown = found.filter(Boolean);
    return [...shown, ...[{ name: "time to the target", q: best.time_to_target }, { name: "energy to the target", q: best.energy }, { name: "carbon to the target", q: best.carbon }]
      .filter((c) => c.q).slice(0, 4 - shown.length)];
  },
  check: (d) => {
    // The interval of a change is that of the candidate, with the central value of the baseline.
    const ends = (c) => (c.change_low === undefined ? c.candidate : { ...c.candidate, low: c.baseline.value * (1 + c.change_low), high: c.baseline.value * (1 + c.change_high) });
    const pair = (name, c) => c?.baseline && c.candidate && { name, q: ends(c), was: c.baseline, note: noteOf(c) };
    const cost = d.cost && { baseline: d.cost.baseline_per_step, candidate: d.cost.candidate_per_step };
    const rate = (q) => q && { value: 1 / q.value, ...(q.low > 0 ? { low: 1 / q.high, high: 1 / q.low } : {}), unit: "steps/s" };
    const s = d.step_time, q = d.quantities ?? {};
    if (!s?.baseline) return [{ name: "verdict", plain: [d.verdict, ""] }];
    return [pair("step time", s), pair("throughput", { baseline: rate(s.baseline), candidate: rate(ends(s)) }),
      pair("cost per step", cost) || pair("energy per step", q.energy), pair("peak memory", q.memory)];
  },
};
const noteOf = (c) => typeof c.change !== "number" ? ""
  : `change ${signed(c.change)}${c.change_low !== undefined ? `: ${signed(c.change_low)} to ${signed(c.change_high)}` : ""}`;

/// Those of the command, or those given.
export function figures({ document: d }, drawn) {
  // Jobs that share devices have a table; the document has no step of a single job.
  const cards = (d.tenants ? [] : drawn ?? of[d.command]?.(d) ?? []).filter((c) => c && (c.plain || typeof c.q?.value === "number"));
  if (!cards.length) return null;
  return el("div.figures", { role: "list", "aria-label": "Key figures with 90 % intervals" }, cards.map(card));
}
