// Why to believe it: the provenance of numbers, errors of such predictions, and remedies.
import { el, section, table } from "./dom.js";
import { count, percent, signed, text, words } from "./format.js";
import { PROVENANCE } from "./meaning.js";

/// The measurement that would cover each kind of part outside the measured range.
const MEASURE = {
  compute: ["operations", "on the device: rehearse bench-gpu"], recompute: ["operations", "on the device: rehearse bench-gpu"],
  optimizer: ["operations", "on the device: rehearse bench-gpu"], bubble: ["operations", "on the device: rehearse bench-gpu"],
  communication: ["collectives", "with nccl-tests on this fabric: rehearse calibrate"], memory: ["copies", "on the host: rehearse bench-gpu"],
  input: ["the input pipeline", "by recording a step that loads: rehearse replay"],
  launch: ["steps", "of the job: rehearse calibrate job"], idle: ["steps", "of the job: rehearse calibrate job"], host: ["steps", "of the job: rehearse calibrate job"],
};

function provenance(d) {
  const from = d.step_from;
  if (!from) return null;
  const parts = Object.entries(from).filter(([, share]) => share > 0.0005);
  if (!parts.length) return null;
  const weak = new Map();
  // An edit is a given change, so no measurement would cover it.
  for (const part of d.command === "whatif" ? [] : d.path_parts ?? []) {
    const share = part.share * ((part.from.extrapolated ?? 0) + (part.from.datasheet ?? 0)), [what, how] = MEASURE[part.kind] ?? [];
    if (what) weak.set(what, { how, share: (weak.get(what)?.share ?? 0) + share });
  }
  const mend = [...weak].filter(([, w]) => w.share >= 0.02).sort((a, b) => b[1].share - a[1].share);
  return [el("h3", {}, "Provenance of the step time"),
    el("div.stack.provenance", { role: "img", "aria-label": parts.map(([name, share]) => `${name} ${percent(share, 0)}`).join(", ") },
      parts.map(([name, share]) => el(`i.${name}`, { style: { width: `${share * 100}%` } }))),
    el("p.legend", {}, parts.map(([name, share]) => el("span", {}, el(`span.swatch.stack-key.${name}`, { "aria-hidden": "true" }), `${name} `, el("b", {}, percent(share, 0)), el("span.quiet", {}, ` ${PROVENANCE[name]}`)))),
    mend.length ? el("ul.warnings", {}, mend.map(([what, { how, share }]) => el("li", {}, el("b", {}, `${percent(share, 0)} of the step`), ` is for ${what} outside the measured range. `, remedy(`measure ${what} ${how}`)))) : null];
}

const remedy = (text) => (text ? el("span.remedy", {}, `To improve this: ${text}.`) : null);

/// Each with its own remedy.
function warnings(lines, remedies) {
  return lines?.length ? [el("h3", {}, "Warnings"),
    el("ul.warnings", {}, lines.map((line, i) => el("li", {}, el("div", {}, line), remedy(remedies?.[i]))))] : null;
}

function accuracy(rows) {
  if (!rows?.length) return null;
  const headings = ["rows", "median error", "p90 error", "worst error", "in the interval", "blind rows"].filter((h) => h in rows[0]);
  return [el("h3", {}, "Errors of such predictions"),
    el("p.lead", {}, "Predictions against measurements of published and recorded jobs. Blind rows were not used in any fit."),
    table("Accuracy of the models used", [{ name: "suite", cell: (r) => r.suite }, ...headings.map((h) => ({ name: h === "in the interval" ? "in the 90 % interval" : h, right: true, cell: (r) => r[h] }))], rows)];
}

function steps(d) {
  // A step without a period of the host shows that of the device.
  const all = (d.ranks ?? []).flatMap((rank) => (rank.steps ?? []).map((step) => ({ ...step.gpu, ...step, rank: rank.rank })));
  if (!all.length || d.command !== "replay") return null;
  const shown = all.slice(0, 200), most = Math.max(...shown.map((s) => Math.max(s.measured_s, s.simulated_s)));
  const at = (time) => `${time / most * 100}%`;
  return [el("h3", {}, "Error of each step"),
    table("Steps, measured and simulated", [
      { name: "rank", right: true, cell: (s) => s.rank }, { name: "step", cell: (s) => s.name + (s.partial ? " (partial)" : "") },
      { name: "measured", right: true, cell: (s) => text(s.measured_s, "s") }, { name: "simulated", right: true, cell: (s) => text(s.simulated_s, "s") },
      { name: "error", right: true, cell: (s) => (s.measured_s > 0 ? signed(s.simulated_s / s.measured_s - 1) : "–") },
      { name: "", cell: (s) => el("span.pair", { "aria-hidden": "true" }, el("i", { style: { width: at(s.measured_s) } }), el("i.simulated", { style: { width: at(s.simulated_s) } })) }], shown),
    all.length > shown.length ? el("p.quiet", {}, `${count(all.length - shown.length)} more steps are in the JSON.`) : null];
}

export function trust(data) {
  const { document: d } = data;
  const list = (title, lines, kind) => lines?.length ? [el("h3", {}, title), el(`ul.${kind}`, {}, lines.map((line) => el("li", {}, line)))] : null;
  const problems = (d.problems ?? []).length ? [el("h3", {}, "Problems of the recording"),
    el("ul.warnings", {}, d.problems.map((p) => el("li", {}, el("div", {}, `${words(p.kind)} (${p.severity}), ${count(p.count)} ${p.count === 1 ? "time" : "times"}, first at ${p.first}`), remedy(p.remedy))))] : null;
  const explained = d.residual_share === undefined ? null : el("p", {}, `Device ops start within ${percent(d.kernel_start_error ?? 0, 2)} of a step of the recording (median). ${percent(d.residual_share, 2)} of the recording is delay that no rule explains.`);
  const compared = d.matched_share === undefined ? null : el("p", {}, `${count(d.candidate.steps)} steps are compared with ${count(d.baseline.steps)} of the baseline (steps from ${d.candidate.steps_from}). ${percent(d.matched_share, 0)} of all op time matched. Both runs were recorded. Intervals come from a bootstrap over steps (seed ${d.seed}).`);
  const content = [explained, compared, provenance(d), steps(d), accuracy(data.accuracy), warnings(d.warnings, d.warning_remedies), problems,
    list("Assumptions", d.notes, "notes"), list("Assumptions of the first option", d.options?.[0]?.notes, "notes")].filter(Boolean);
  if (d.conditions?.source) content.push(el("p.quiet", {}, `Conditions: ${d.conditions.source}.`));
  if (d.methods?.length) content.push(el("h3", {}, "How this was computed"),
    el("ul.notes", {}, d.methods.map((b) => el("li", {}, el("b", {}, b.name), `: ${b.meaning}.`, b.changes.map((c) => el("div.quiet", {}, el("code", {}, c.change), ` ${c.effect}.`))))));
  if (!content.length) return null;
  return section("trust", "Why should I believe it?", "Bands and ranges are 90 % intervals.", ...content);
}
