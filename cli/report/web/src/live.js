// The live page: controls, and the report of the answer to them. The first fidelity answers every
// change; a later change ends the others.
import { control } from "./control.js";
import { el } from "./dom.js";
import { report } from "./report.js";

export function live({ name, fidelities, saves, controls: described }) {
  const given = new Map();  // key -> text, of the controls that differ from their first value
  const state = el("p.state", { role: "status" }), fault = el("div.fault", { role: "alert" }), answer = el("div.answer");
  const computing = `Computing ${fidelities[0].words} …`;
  let busy = false, again = false, rest = new AbortController();

  const ask = (path, fidelity, signal) => fetch(path, { method: "POST", signal, body: JSON.stringify({ fidelity, settings: Object.fromEntries(given) }) });
  const complain = (lines) => {
    fault.replaceChildren(...lines.map((line) => el("p", {}, line)));
    answer.classList.toggle("old", lines.length > 0);
    if (lines.length) state.textContent = answer.firstChild ? "The answer below is the last one." : "";
  };
  /// The reply, or nothing where there is an error, which is shown, or a later request.
  async function good(request, signal) {
    let reply, errors;
    try {
      reply = await request;
      if (reply.ok) return reply;
      errors = (await reply.json()).errors.map((e) => e.message);
    } catch {
      errors = ["rehearse live no longer answers: start it again"];
    }
    if (!signal?.aborted && reply?.status !== 409) complain(errors);
    return undefined;
  }
  function show(data, at) {
    const next = fidelities[at + 1];
    // The page keeps its place where an answer has fewer sections than the next one.
    answer.style.minHeight = next ? `${answer.offsetHeight}px` : "";
    answer.replaceChildren(...report(data));
    complain([]);
    // An answer to earlier settings is shown while a slider moves.
    state.textContent = again ? computing : `Answered ${fidelities[at].words}${next ? `; the answer ${next.words} follows` : ""}.`;
    for (const c of data.controls) {
      const here = controls.get(c.key);
      if (!here) continue;
      here.matters = c.matters;
      if (!given.has(c.key) && !here.element.contains(document.activeElement)) here.show(c.value);
    }
  }
  async function answered(at, signal) {
    const reply = await good(ask("answer", fidelities[at].name, signal), signal);
    if (!reply) return false;
    const data = await reply.json().catch(() => undefined);
    if (!data || signal?.aborted) return false;
    show(data, at);
    return true;
  }
  async function update() {
    rest.abort();
    again = true;
    state.textContent = computing;
    if (busy) return;
    busy = true;
    let shown = false;
    while (again) {
      again = false;
      shown = await answered(0);
    }
    busy = false;
    rest = new AbortController();
    const { signal } = rest;
    for (let at = 1; shown && at < fidelities.length; ++at) shown = await answered(at, signal);
  }
  const changed = (c) => {
    if (c.value() === c.first) given.delete(c.key);
    else given.set(c.key, c.value());
    return update();
  };
  async function download(path, fidelity) {
    const reply = await good(ask(path, fidelity));
    if (!reply) return;
    const link = el("a", { href: URL.createObjectURL(await reply.blob()), download: reply.headers.get("Content-Disposition").match(/"(.*)"/)[1] });
    link.click();
    URL.revokeObjectURL(link.href);
  }
  const reset = () => {
    given.clear();
    for (const c of controls.values()) c.show(c.first);
    return update();
  };

  const controls = new Map(described.map((c) => [c.key, control(c, changed)]));
  const groups = [...new Set(described.map((c) => c.group))].map((group) => {
    const those = (main) => described.filter((c) => c.group === group && c.main === main).map((c) => controls.get(c.key).element);
    const more = those(false);
    return el("fieldset", {}, el("legend", {}, group), those(true), more.length ? el("details", {}, el("summary", {}, "more"), more) : null);
  });
  const last = fidelities.at(-1).name;
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  document.getElementById("report").classList.add("live");
  update();
  return [el("form.controls", { "aria-label": "Settings", onsubmit: (e) => e.preventDefault() },
    el("h2", {}, name),
    el("div.tools", {}, saves ? button("save as job", () => download("job", last)) : null, button("report", () => download("report", last)), button("reset", reset)),
    groups), el("div", {}, state, fault, answer)];
}
