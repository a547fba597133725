// Documents in the shapes that docs/formats/json.md promises, and a timeline of any size, for pages
// that no short run of the program makes.
export const q = (value, unit, spread = 0.05, provenance = "interpolated") => ({ value, low: value * (1 - spread), high: value * (1 + spread), unit, provenance });

export const hostile = "</script><script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\">";

/// Parts of a path that are so long.
export const pathParts = (times) => {
  const total = Object.values(times).reduce((sum, t) => sum + t, 0);
  return Object.entries(times).map(([kind, t]) => ({ kind, part: kind.replaceAll("_", " "), time: q(t, "s"), share: t / total,
    from: { recorded: 0, interpolated: 0.75, extrapolated: 0.25, datasheet: 0 }, ops: [{ name: `largest of ${kind}`, time: q(t / 2, "s") }], more_ops: 3 }));
};

/// Options that trade time for cost, on several providers.
export function recommend() {
  const kinds = [["aws", "p4d.24xlarge", 32.8, 312], ["aws", "p5.48xlarge", 98.3, 989], ["gcp", "a3-highgpu-8g", 88.5, 989], ["azure", "ND96amsr_A100_v4", 32.8, 312], ["lambda", "gpu_8x_h100_sxm5", 23.9, 989]];
  const options = [];
  for (const [provider, instance, price, speed] of kinds)
    for (const count of [1, 2, 4, 8, 16]) {
      const hours = 40000 / (speed * count ** 0.93), cost = hours * price * count;
      options.push({ provider, instance, count, gpus: count * 8, meets: true, plan: { data: count * 2, tensor: 4, pipeline: 1, context: 1, expert: 1, expert_tensor: 1, interleave: 1, split: "blocks",
          schedule: "1f1b", zero: 1, sequence_parallel: false, synchronization: "all_reduce", offload: "none", placement: "stages_apart", microbatch: 2, recompute: "selective" },
        step_time: q(20 / count, "s"), throughput: q(12.8 * count, "1/s"), memory_per_device: { ...q(61 * 2 ** 30, "B"), fits: true, verdict: "fits", usable: { value: 79.2 * 2 ** 30, unit: "B" }, parts: {} }, storage_cost: { value: 20, unit: "USD" }, transfer_cost: { value: 0, unit: "USD" }, notes: [`price: ${instance} on demand, ${price} USD/h, of 2025`],
        time_to_target: q(hours * 3600, "s"), cost_to_target: q(cost, "USD"), energy: q(hours * count * 5.2 * 3.6e6, "J", 0.2), carbon: q(hours * count * 5.2 * (provider === "gcp" ? 90 : 380), "gCO2e", 0.2), stalls: { network: { value: 0.1, unit: "s", share: 0.005 * count } } });
    }
  options.sort((a, b) => a.cost_to_target.value - b.cost_to_target.value);
  let fastest = Infinity;
  const pareto = options.map((o, i) => [o, i]).filter(([o]) => o.time_to_target.value < fastest && ((fastest = o.time_to_target.value), true)).map(([, i]) => i);
  return { schema: "rehearse/1", command: "recommend", job: { workload: "gpt_7b" }, options, pareto, why: ["the cheapest that meets the deadline of 5 days"],
    offers: { seen: 30, ruled_out: 5, impossible: 0, why_impossible: "" }, warnings: ["input and fetch stalls are unknown: the job has no `input`"], warning_remedies: ["describe the pipeline that feeds it"] };
}

export function plan() {
  const best = [];
  for (let i = 0; i < 10; ++i)
    best.push({ plan: { data: 16, tensor: 8 >> (i % 3), pipeline: 12, zero: i % 4, microbatch: 1 + (i % 2), schedule: i % 2 ? "interleaved" : "1f1b", sequence_parallel: i % 2 === 0 },
      step_time: q(19 + i * 0.3, "s"), throughput: q(80 - i, "1/s"), mfu: q(0.4, "1"), hfu: q(0.45, "1"),
      memory_per_device: { ...q((70 - i * 3) * 2 ** 30, "B"), fits: true, verdict: "fits", usable: { value: 79.2 * 2 ** 30, unit: "B" }, parts: {} },
      breakdown: { compute: q(15, "s"), exposed_communication: q(2 + i * 0.3, "s"), bubble: q(2, "s"), input: q(0, "s"), launch: q(0, "s"), idle: q(0.02, "s") },
      path: { ends_on: 0, ranks: 12, steps: 1 }, path_parts: pathParts({ compute: 15, communication: 2 + i * 0.3, bubble: 2, idle: 0.02 }),
      step_from: { recorded: 0, interpolated: 0.75, extrapolated: 0.25, datasheet: 0 },
      cost_per_step: q(3.1 - i * 0.05, "USD"), energy_per_step: q(1e7, "J"), carbon_per_step: null, warnings: [] });
  return { schema: "rehearse/1", command: "plan", candidates_seen: 48210, candidates_per_s: 4100, best, pareto: [best[0], best[3], { ...best[9], plan: { ...best[9].plan, data: 8 } }] };
}

export function check() {
  const names = ["gemm_128x128", "flash_fwd", "layer_norm", "all_reduce", hostile];
  return { schema: "rehearse/1", command: "check", verdict: "fail", step_time: { baseline: q(0.412, "s", 0.01, "recorded"), candidate: q(0.431, "s", 0.01, "recorded"), change: 0.046, change_low: 0.04, change_high: 0.053, significant: true },
    baseline: { source: "before.json", steps: 20, step_times_s: Array.from({ length: 20 }, (_, i) => 0.41 + (i % 5) * 1e-3) },
    candidate: { source: "after.json", steps: 20, step_times_s: Array.from({ length: 20 }, (_, i) => 0.429 + (i % 5) * 1e-3) },
    quantities: { memory: { baseline: { value: 60 * 2 ** 30, unit: "B" }, candidate: { value: 61 * 2 ** 30, unit: "B" }, change: 0.017, significant: false },
      energy: { baseline: { value: 2400, unit: "J" }, candidate: { value: 2500, unit: "J" }, change: 0.04, change_low: 0.03, change_high: 0.05, significant: true } },
    findings: [{ name: "step_time", verdict: "fail", message: "+4.60 %: a rise of +3 % is too much", file: "after.json" }],
    limits: [{ name: "step_time", verdict: "fail", allowed: "+3 %", message: "+4.60 %: a rise of +3 % is too much" }],
    ops: names.map((name, i) => ({ name, baseline: { value: 0.1 / (i + 1), unit: "s" }, candidate: { value: 0.1 / (i + 1) * (1 + (i % 2 ? 0.08 : -0.002)), unit: "s" }, change: i % 2 ? 0.08 : -0.002, significant: i % 2 === 1 })), warnings: [] };
}

/// Two jobs on the same devices, of whichever command runs them.
export function tenants(command = "simulate") {
  const none = q(0, "s");
  const tenant = (name, alone, lost) => ({ name, alone: q(alone, "s"), shared: q(alone + lost, "s", 0.3), slowdown: { value: 1 + lost / alone, low: 1, high: 3, unit: "1" },
    loss: { total: q(lost, "s"), compute: q(lost * 0.75, "s"), memory_bandwidth: q(lost * 0.25, "s"), waiting: none, changes: none, communication: none }, periods: 31 });
  return { schema: "rehearse/1", command, share: { policy: "mps" }, tenants: [tenant("bert.yaml", 0.064, 0.01), tenant("resnet.yaml", 0.02, 0.03)], warnings: [] };
}

function pack(lanes) {
  const bytes = [];
  const put = (value) => {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
    bytes.push(value);
  };
  for (const spans of lanes) {
    let before = 0;
    for (const [start, duration, name, category, back] of spans) {
      put(start - before);
      put(duration);
      put(32 * name + 2 * category);
      put(back ? 1 + (2 * back - 1) : 0); // zigzag(-back)
      before = start;
    }
  }
  return Buffer.from(Uint8Array.from(bytes)).toString("base64");
}

/// So many spans in lanes of half as many ranks, each waiting for the one before it.
export function timeline(count, names = Array.from({ length: 400 }, (_, i) => `kernel_${i}`), rows = 16) {
  const lanes = [], described = [], each = Math.floor(count / rows);
  for (let lane = 0; lane < rows; ++lane) {
    const spans = [];
    let at = lane * 977;
    for (let i = 0; i < each; ++i) {
      const duration = 500 + ((i * 7919 + lane * 104729) % 9000);
      spans.push([at, duration, (i * 31 + lane) % names.length, lane % 2, i ? 1 : 0]);
      at += duration + (i % 3 ? 0 : 800);
    }
    lanes.push(spans);
    described.push({ process: `rank ${lane >> 1}`, name: lane % 2 ? "stream 13" : "stream 7", spans: each });
  }
  const end = Math.max(...lanes.map((spans) => spans.at(-1)[0] + spans.at(-1)[1]));
  return { start_s: 0, end_s: end * 1e-9, spans: each * rows, left_out: 0, lanes: described, names,
    categories: ["compute", "communication", "memory", "host", "input", "launch", "synchronization", "profiler", "delay"], packed: pack(lanes) };
}

export function simulate() {
  return { schema: "rehearse/1", command: "simulate", job: { workload: hostile, ranks: 8, device: "a100", devices: [] }, step_time: q(1, "s"), throughput: q(10, "1/s"),
    breakdown: { compute: q(0.7, "s"), exposed_communication: q(0.3, "s") }, path: { ends_on: 0, ranks: 1, steps: 1 },
    path_parts: [{ ...pathParts({ compute: 0.7 })[0], ops: [{ name: hostile, time: q(0.5, "s") }] }, pathParts({ communication: 0.3 })[0]],
    step_from: { recorded: 0, interpolated: 0.75, extrapolated: 0.25, datasheet: 0 }, warnings: [`a warning of ${hostile}`], warning_remedies: [`mend ${hostile}`], notes: [] };
}
