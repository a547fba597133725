// Reproduce: the command and the inputs that give this page again.
import { el, section } from "./dom.js";

export function again({ reproduce: r, document: d }) {
  if (!r) return null;
  // Runs of a history: recordings are named with the inputs.
  const run = (of) => of?.source && !r.inputs?.some((input) => input.path === of.source) && `${of.source}${of.commit ? ` of commit ${of.commit}` : ""}${of.devices?.length ? `, on ${of.devices.join(", ")}` : ""}`;
  const recorded = ({ ranks, commits, devices }) => [`${ranks} ${ranks === 1 ? "rank" : "ranks"}`, devices.length && `on ${devices.join(", ")}`, commits.length && `of commit ${commits.join(", ")}`].filter(Boolean).join(", ");
  const rows = [["baseline", run(d.baseline)], ["candidate", run(d.candidate)], ["command", el("code", {}, r.command)], ["version", r.version], ["conditions", d.conditions?.source], ["randomness", d.seed !== undefined ? `seed ${d.seed}` : d.candidates_per_s !== undefined ? "none, except for the reported speed of the search" : "none: the same command gives the same bytes"]].filter(([, value]) => value);
  const texts = (r.inputs ?? []).filter((input) => input.text);
  return section("again", "Reproduce", null,
    el("dl.reproduce", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
      (r.inputs ?? []).filter((input) => !input.text).map((input) => [el("dt", {}, "input"), el("dd", {}, el("code", {}, input.path), input.recording && `: ${recorded(input.recording)}`)])),
    texts.map((input) => el("details", { open: input.text.length < 3000 }, el("summary", {}, el("code", {}, input.path)), el("pre", { tabindex: 0 }, input.text))),
    el("details", {}, el("summary", {}, "The whole result as JSON"), el("pre.json", { tabindex: 0 }, JSON.stringify(d, null, 1))));
}
