// The time from a change to the reply of a live page, as its script would ask: median of 20.
//   node test/latency.mjs REHEARSE FIDELITY KEY=VALUE,VALUE... FILE...
import { spawn } from "node:child_process";

const [program, fidelity, setting, ...files] = process.argv.slice(2);
const [key, values] = setting.split(/=(.*)/s);
for (const file of files) {
  const ran = spawn(program, ["live", file], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((done) => ran.stdout.on("data", (text) => done(String(text).match(/http:\S+/)[0])));
  const times = [];
  for (let i = 0; i < 20; ++i) {
    const body = JSON.stringify({ fidelity, settings: { [key]: values.split(",")[i % values.split(",").length] } });
    const from = performance.now();
    const reply = await fetch(`${address}answer`, { method: "POST", body });
    const answer = await reply.json();
    times.push(performance.now() - from);
    if (!reply.ok) throw new Error(answer.errors[0].message);
  }
  times.sort((a, b) => a - b);
  console.log(`${file}, ${fidelity}: median ${times[10].toFixed(0)} ms, least ${times[0].toFixed(0)} ms, most ${times[19].toFixed(0)} ms`);
  ran.kill("SIGINT");
}
