// The report: sections in the order of a reader's questions. A section without data is omitted.
import { again } from "./again.js";
import { changes } from "./changes.js";
import { el } from "./dom.js";
import { figures } from "./figures.js";
import { whatHelps } from "./gains.js";
import { load } from "./load.js";
import { memory } from "./memory.js";
import { options } from "./options.js";
import { roofline } from "./roofline.js";
import { shown } from "./shown.js";
import { tenants } from "./tenants.js";
import { timeline } from "./timeline/view.js";
import { trust } from "./trust.js";
import { waterfall } from "./waterfall.js";

const short = { where: "where", load: "load", help: "what helps", when: "timeline", fit: "memory", hardware: "hardware", options: "options", changed: "changes", tenants: "jobs", trust: "trust", again: "reproduce" };

/// The elements of the page.
export function report(data) {
  const d = data.document;
  // The step shown for a search is that of the best plan.
  const best = d.command === "plan" ? d.best?.[0] : undefined;
  const step = best ? { ...data, document: { ...best, command: d.command } } : data;
  const joined = (key) => [...(best[key] ?? []), ...(d[key] ?? [])];
  const believed = best ? { ...data, document: { ...best, ...d, warnings: joined("warnings"), warning_remedies: joined("warning_remedies") } } : data;

  const laid = [d.options || d.best ? options(data) : null, tenants(data), changes(data), load(data), waterfall(step), whatHelps(step), timeline(step), memory(step),
    roofline(step)].filter(Boolean);
  const drawn = laid.length ? undefined : shown(data);
  const headline = drawn?.headline || data.answer || `rehearse ${d.command}`;
  const sections = [...laid.map((s) => [short[s.id] ?? s.id, s]), ...(drawn?.sections ?? []).map((s) => [s.title.toLowerCase(), s.element]),
    ...[trust(believed), again(data)].filter(Boolean).map((s) => [short[s.id], s])];
  const verdict = d.verdict ? `verdict ${d.verdict}` : "";
  document.title = `${headline.split(":")[0]} · rehearse ${d.command}`;
  return [
    el("header", {},
      el("p.kicker", {}, `rehearse ${d.command}`),
      el("h1", { class: verdict }, headline),
      figures(data, drawn?.figures), drawn?.lead,
      el("nav", { "aria-label": "Sections" }, sections.map(([name, s]) => el("a", { href: `#${s.id}` }, name)))),
    ...sections.map(([, s]) => s)];
}
