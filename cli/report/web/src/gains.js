// What would help most: single changes, each simulated separately.
import { el, section } from "./dom.js";
import { percent, text } from "./format.js";

function changesOf({ document: d, gains }) {
  const rows = [];
  for (const c of gains ?? [])
    rows.push({ what: c.change, gain: c.gain, step: c.step_s, fits: c.fits,
      cost: c.memory_b ? `${text(c.memory_b, "B")} of ${text(c.usable_b, "B")}` : "" });
  for (const a of d.advice ?? [])
    rows.push({ what: a.meaning, gain: -a.change, step: a.step_time.value, cost: "", edit: a.edit });
  const step = d.step_time?.value;
  for (const c of d.what_would_help ?? [])
    rows.push({ what: c.change, gain: 1 - c.step_time.value / step, step: c.step_time.value, ideal: true, cost: "upper limit of the gain" });
  return rows.filter((r) => r.gain >= 0.002).sort((a, b) => b.gain - a.gain).slice(0, 12);
}

export function whatHelps(data) {
  if (!data.document.step_time) return null;
  const rows = changesOf(data);
  if (!rows.length) return null;
  const most = Math.max(...rows.map((r) => r.gain));
  return section("help", "What would help most?",
    "Each change is simulated alone. Hollow bars remove something completely: the upper limit of the gain there.",
    el("ul", { class: rows.some((r) => r.cost) ? "gains" : "gains plain" }, rows.map((r) => el("li", {},
      el("span.label", {}, r.what, r.edit ? el("code", {}, r.edit) : null),
      el("span.track", { "aria-hidden": "true" },
        el(r.ideal ? "i.ideal" : r.fits === "does not fit" ? "i.unfit" : "i", { style: { width: `max(2px, ${r.gain / most * 100}%)` } })),
      el("span.time", {}, `−${percent(r.gain)}`),
      el("span.share", {}, text(r.step, "s")),
      rows.some((x) => x.cost) ? el("span.cost", {}, r.cost, r.fits && r.fits !== "fits" ? el("b.bad", {}, ` ${r.fits}`) : null) : null))));
}
