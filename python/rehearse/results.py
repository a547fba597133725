"""The classes of results, with the types of their fields. A field that a document leaves out is None.

Written by python/backend/result_classes.py, from docs/formats/json.md and documents of the commands."""

from __future__ import annotations

from typing import Any, Optional, Union

from ._values import Fields, Figure, Quantity, Result, Table


class GpusRow(Fields):
    name: str
    partition: str
    multiprocessors: int


class OpCostsRow(Fields):
    op: str
    shape: str
    dtype: str
    layout: str
    epilogue: str
    state: str
    device: str
    multiprocessors: int
    partition: str
    memory_clock: Quantity
    libraries: str
    median: Quantity
    mean: Quantity
    min: Quantity
    p10: Quantity
    p90: Quantity
    samples: int
    half_width: float
    dropped: int
    capped: float
    sm_clock: Quantity
    date: str
    note: str


class SkippedRow(Fields):
    op: str
    shape: str
    dtype: str
    why: str


class Envelope(Fields):
    to: Union[Quantity, Any]
    ranks: Table[int]
    kinds: Union[Table[str], Any]


class MethodsRow(Fields):
    name: str
    meaning: str
    changes: Table[MethodsRowChangesRow]


class MethodsRowChangesRow(Fields):
    change: str
    effect: str


class FactorsRow(Fields):
    part: str
    factor: float
    low: float
    high: float
    before_low: float
    before_high: float


class CalibrateJobsRow(Fields):
    job: str
    ranks: int
    measured: Quantity
    predicted_s: float
    weight: float


class NextRow(Fields):
    plan: str
    step_time: Quantity
    decides: str


class CatalogRowsRow(Figure):
    name: Optional[str]
    vendor: Optional[str]
    architecture: Optional[str]
    form_factor: Optional[str]
    release: Optional[str]
    multiprocessors: Optional[float]
    boost_clock: Optional[Quantity]
    memory: Optional[Quantity]
    memory_type: Optional[str]
    memory_rate: Optional[Quantity]
    l2: Optional[Quantity]
    fp64: Optional[Quantity]
    fp32: Optional[Quantity]
    pcie_generation: Optional[float]
    pcie_lanes: Optional[float]
    power_limit: Optional[Quantity]
    idle_power: Optional[Quantity]
    compute_capability: Optional[str]
    source: Optional[str]
    as_of: Optional[str]
    recalled: Optional[bool]
    confidence: Optional[str]
    notes: Optional[str]
    fp16: Optional[Quantity]
    link: Optional[str]
    link_generation: Optional[float]
    link_count: Optional[float]
    link_both_directions: Optional[Quantity]
    link_per_direction: Optional[Quantity]
    fp16_tensor: Optional[Quantity]
    tf32_tensor: Optional[Quantity]
    bf16_tensor: Optional[Quantity]
    fp64_tensor: Optional[Quantity]
    mig_instances: Optional[float]
    mig_family: Optional[str]
    fp8_tensor: Optional[Quantity]
    family: Optional[str]
    gpus: Optional[Table[str]]
    compute_slices: Optional[float]
    compute_slices_total: Optional[float]
    memory_slices: Optional[float]
    memory_slices_total: Optional[float]
    usable_memory: Optional[Quantity]
    copy_engines: Optional[float]
    nvml_id: Optional[float]
    max_instances: Optional[float]
    placement_starts: Optional[Table[int]]
    placement_size: Optional[float]
    media_extensions: Optional[bool]
    provider: Optional[str]
    gpu: Optional[str]
    gpu_count: Optional[float]
    vcpus: Optional[float]
    local_storage: Optional[Quantity]
    network: Optional[Quantity]
    network_kind: Optional[str]
    storage_network: Optional[Quantity]
    gpu_interconnect: Optional[str]
    gpu_link_both_directions: Optional[Quantity]
    kind: Optional[str]
    nominal: Optional[Quantity]
    nominal_scope: Optional[str]
    per_direction: Optional[Quantity]
    achieved: Optional[Quantity]
    latency: Optional[Quantity]
    latency_kind: Optional[str]
    region: Optional[str]
    on_demand: Optional[Quantity]
    on_demand_per_gpu: Optional[Quantity]
    spot: Optional[Quantity]
    zone: Optional[str]
    intensity: Optional[Quantity]
    basis: Optional[str]
    location: Optional[str]
    data_year: Optional[str]
    pue: Optional[float]
    component: Optional[str]
    min: Optional[Quantity]
    max: Optional[Quantity]
    connection: Optional[Quantity]
    requests: Optional[Quantity]
    request_price: Optional[Quantity]
    total: Optional[Quantity]
    price: Optional[Quantity]
    service: Optional[str]
    item: Optional[str]
    scope: Optional[str]
    how_obtained: Optional[str]
    where: Optional[str]
    what: Optional[str]


class FindingsRow(Fields):
    verdict: str
    name: str
    message: str
    file: str


class CheckBaseline(Fields):
    source: str
    ranks: int
    devices: Table[str]
    steps: int
    steps_from: str
    step_times_s: Table[float]


class CheckStepTime(Fields):
    baseline: Quantity
    candidate: Quantity
    change: float
    change_low: float
    change_high: float
    significant: bool


class Quantities(Fields):
    compute: CheckStepTime
    launch_gaps: CheckStepTime


class Cost(Fields):
    baseline_per_step: Quantity
    candidate_per_step: Quantity
    price: str
    steps_per_epoch: float


class CheckLimitsRow(Fields):
    name: str
    verdict: str
    allowed: str
    message: str


class CheckOpsRow(Fields):
    name: str
    kind: str
    baseline: Quantity
    candidate: Quantity
    change: float
    change_low: float
    change_high: float
    significant: bool
    calls: Calls


class Calls(Fields):
    baseline: float
    candidate: float


class History(Fields):
    now: Now
    runs: Table[RunsRow]
    segments: Table[SegmentsRow]


class Now(Fields):
    length: Quantity
    level: Quantity
    drifts: float


class RunsRow(Fields):
    source: str
    step_time: Quantity
    began: float


class SegmentsRow(Fields):
    first: int
    runs: int
    shape: str
    begin: Quantity
    end: Quantity
    slope: float
    noise: float


class Store(Fields):
    file: str
    runs: int
    pooled: int
    accepted: Optional[bool]
    why_not: Optional[str]


class PredictionsRow(Fields):
    name: str
    verdict: str
    step_error: float
    start_error: float


class SidesRow(Fields):
    name: str
    verdict: str
    ratio: Any


class DifferencesRow(Fields):
    key: str
    values: Table[Optional[Quantity]]
    change: Optional[float]


class BreakdownRow(Fields):
    key: str
    values: Table[Quantity]
    change: Optional[float]


class ChecksRow(Fields):
    name: str
    ok: bool
    detail: str
    remedy: str


class TermsRow(Fields):
    term: str
    text: str


class Files(Fields):
    prefix: str
    ranks: int
    ops: int


class QueuedS(Fields):
    mean: float
    median: float
    p90: float
    worst: float


class FleetJobsRow(Fields):
    job: str
    user: str
    ran: bool
    slice: str
    nodes: int
    submit_s: float
    start_s: float
    end_s: float
    held_s: float
    wait_s: float
    slowdown: float
    preemptions: int


class CommandsRow(Fields):
    name: str
    meaning: str
    examples: str
    options: Table[CommandsRowOptionsRow]


class CommandsRowOptionsRow(Fields):
    name: str
    positional: bool
    value: Optional[str]
    repeated: bool
    required: bool
    words: Table[str]
    meaning: str


class Ops(Fields):
    host: int
    gpu: int


class ProblemsRow(Fields):
    severity: str
    kind: str
    count: int
    first: str
    remedy: str


class InputLimitsRow(Fields):
    what: str
    rate: Quantity


class UnitOfLastStage(Fields):
    samples: float
    rate: Quantity


class InputStagesRow(Fields):
    name: str
    workers: int
    threads: int
    busy: float
    alone: Quantity


class InputAdviceRow(Fields):
    stage: str
    setting: str
    memory: Optional[Quantity]
    text: str
    to: Optional[int]


class Tuned(Fields):
    rate: Quantity
    bottleneck: str
    allowed: Quantity


class InspectRanksRow(Fields):
    rank: int
    source: str
    format: str
    host_ops: int
    gpu_ops: int
    devices: Table[RanksRowDevicesRow]
    facts: Table[Any]
    steps: Table[InspectRanksRowStepsRow]
    clock_fit: Any


class RanksRowDevicesRow(Fields):
    ordinal: int
    name: str


class InspectRanksRowStepsRow(Fields):
    name: str
    partial: bool
    measured_s: float
    gpu: Optional[InspectRanksRowStepsRowGpu]
    energy_j: Optional[float]
    idle_energy_j: Optional[float]


class InspectRanksRowStepsRowGpu(Fields):
    measured_s: float


class InspectBreakdown(Fields):
    total: Quantity
    compute: Quantity
    exposed_communication: Quantity
    memory: Quantity
    bubble: Quantity
    input: Quantity
    launch: Quantity
    host_bound: Quantity
    unexplained_wait: Quantity
    profiler: Quantity
    idle: Quantity


class InspectOpsRow(Fields):
    kind: str
    name: str
    calls: int
    total: Quantity
    energy_j: Optional[float]


class Energy(Fields):
    boards: Table[BoardsRow]


class BoardsRow(Fields):
    host: str
    uuid: str
    name: str
    seconds: float
    energy_j: float
    ops_j: float
    idle_j: float
    other_j: float
    shared: bool
    counter_j: float
    counter_by_power_j: float


class Step(Fields):
    name: str
    of: int
    time: Quantity


class Device(Fields):
    busy: Quantity
    layers: Quantity
    copies: Quantity
    communication: Quantity
    unknown: Quantity
    overlapped: Quantity
    ops: float
    idle_per_op: Quantity


class LayersRow(Fields):
    name: str
    ops: int
    parameters: float
    forward: Quantity
    backward: Quantity
    optimizer: Quantity
    output_bytes: float
    kept_bytes: float
    recomputed: Optional[Quantity]


class PlanRow(Fields):
    name: str
    degree: int
    evidence: str


class Cluster(Fields):
    nodes: int
    devices: int
    vertices: int
    links: int


class NodeGroupsRow(Fields):
    count: int
    first: str
    devices: Table[str]
    parts: Table[PartsRow]


class PartsRow(Fields):
    name: str
    kind: str
    count: int
    links: Table[LinksRow]


class LinksRow(Fields):
    to: str
    type: str
    count: int


class LinkTypesRow(Fields):
    name: str
    count: int
    rate: Quantity
    latency: Quantity
    duplex: str
    provenance: str
    source: str


class InspectChangesRow(Fields):
    link: str
    at: Quantity
    share: float


class LayoutsRow(Fields):
    unused: Unused
    wasted: Wasted
    instances: Table[InstancesRow]
    still_fit: Table[Any]
    kept_out: Table[Any]


class Unused(Fields):
    compute_slices: int
    memory_slices: int


class Wasted(Fields):
    compute_slices: int
    memory_slices: int


class InstancesRow(Fields):
    profile: str
    start: int
    size: int
    compute_slices: int
    memory_slices: int
    multiprocessors: int
    memory: Quantity
    memory_rate: Quantity
    shares: Shares


class Shares(Fields):
    multiprocessors: float
    memory: float
    bandwidth: float
    l2: float
    copy_engines: float
    power: float


class Law(Fields):
    host: Quantity
    fixed: Quantity
    per_sample: Quantity
    alpha: float
    beta: float
    slice_rate: float
    exponent: float
    residual: float
    identified: bool


class SlicesRow(Fields):
    profile: str
    instances: int
    points: Table[SlicesRowPointsRow]


class SlicesRowPointsRow(Fields):
    batch: float
    step_time: Quantity
    slowdown: float
    gain: float
    memory: Quantity
    fits: bool


class Calibration(Fields):
    source: str
    note: str


class NetworkPointsRow(Fields):
    op: str
    ranks: int
    bytes: float
    time: Quantity
    bus_bandwidth: Optional[Quantity]
    algorithm: str
    protocol: Optional[str]
    channels: int
    measured: Optional[Quantity]
    error: Optional[float]
    covered: Optional[bool]


class BandsRow(Fields):
    size: str
    rows: int
    mean_error: float
    bias: float
    worst_error: float
    covered: int


class PlacementsRow(Fields):
    jobs: Table[str]
    how: str
    gpus: Table[int]
    slices: Table[str]
    rates: Table[float]
    ranges: Table[Table[float]]
    start: Quantity
    end: Quantity
    gain: float
    why: str


class PerJobRow(Fields):
    job: str
    start: Quantity
    finish: Quantity
    slowdown: float


class PlanJob(Fields):
    workload: str
    devices: int


class BestRow(Fields):
    plan: Optional[BestRowPlan]
    flags: Any
    devices: Union[int, Any]
    goodput_per_device: Union[Quantity, Any]
    tokens_per_s_per_device: Union[Quantity, Any]
    tokens_per_s_per_user: Union[Quantity, Any]
    mean_ttft: Union[Quantity, Any]
    mean_tpot: Union[Quantity, Any]
    server: Union[Server, Any]
    ttft: Union[SimulateTtft, Any]
    tpot: Union[SimulateTtft, Any]
    itl: Union[SimulateTtft, Any]
    end_to_end: Union[SimulateTtft, Any]
    queue: Union[SimulateTtft, Any]
    time_of_request: Union[BestRowTimeOfRequest, Any]
    throughput: Any
    duration: Union[Quantity, Any]
    goodput: Union[Quantity, Any]
    held_rate: Union[Quantity, Any]
    cache: Union[BestRowCache, Any]
    overloaded: Union[Quantity, Any]
    preemptions: Union[float, Any]
    running: Union[float, Any]
    memory_per_device: MemoryPerDevice
    cost_per_million_tokens: Any
    energy_per_token: Union[Quantity, Any]
    saturated: Union[bool, Any]
    capacity: Union[Quantity, Any]
    chance: Union[float, Any]
    chance_if_common: Union[float, Any]
    chance_if_own: Union[float, Any]
    models: Union[Models, Any]
    job: Union[BestRowJob, Any]
    fidelity: Union[str, Any]
    folded: Union[bool, Any]
    step_time: Union[Quantity, Any]
    regime: Union[Regime, Any]
    tokens_per_s: Union[Quantity, Any]
    mfu: Union[Quantity, Any]
    hfu: Union[Quantity, Any]
    energy_per_step: Union[Quantity, Any]
    energy_parts: Union[EnergyParts, Any]
    cost_per_step: Union[Quantity, Any]
    carbon_per_step: Union[Quantity, Any]
    breakdown: Union[InspectBreakdown, Any]
    critical_path: Union[Table[CriticalPathRow], Any]
    path: Union[Path, Any]
    path_parts: Union[Table[PathPartsRow], Any]
    step_from: Union[From, Any]
    host: Union[Host, Any]
    compute_parts: Union[ComputeParts, Any]
    remedies: Union[Table[Any], Any]
    stages: Union[Table[SimulateStagesRow], Any]
    compute_from: Union[From, Any]
    conditions: Union[Conditions, Any]
    applied: Union[Table[str], Any]
    notes: Union[Table[str], Any]
    warnings: Union[Table[Any], Any]
    warning_remedies: Union[Table[Any], Any]


class BestRowPlan(Fields):
    tensor: int
    pipeline: int
    expert: int
    data: int
    context: int
    router: Union[str, Any]
    global_batch: Union[float, Any]
    dtype: Union[str, Any]
    optimizer: Union[str, Any]
    gradients: Union[str, Any]
    accumulation: Union[str, Any]
    microbatch: Union[float, Any]
    recompute: Union[str, Any]
    lora_rank: Union[int, Any]
    lora_targets: Union[str, Any]
    frozen_weights: Union[str, Any]
    expert_tensor: Union[int, Any]
    interleave: Union[int, Any]
    split: Union[str, Any]
    schedule: Union[str, Any]
    zero: Union[int, Any]
    gather_weights: Union[str, Any]
    offload: Union[str, Any]
    weights_on: Union[str, Any]
    gradients_on: Union[str, Any]
    optimizer_on: Union[str, Any]
    activations_on: Union[str, Any]
    weights_away: Union[float, Any]
    optimizer_away: Union[float, Any]
    activations_away: Union[float, Any]
    placement: Union[str, Any]
    sequence_parallel: Union[bool, Any]
    overlap_tensor: Union[bool, Any]
    asynchronous_tensor: Union[bool, Any]
    microbatch_parts: Union[int, Any]
    quantised_gathers: Union[bool, Any]
    overlap_gradients: Union[bool, Any]
    bucket: Union[Quantity, Any]
    compression: Union[float, Any]
    context_exchange: Union[str, Any]
    context_balanced: Union[bool, Any]
    expert_exchange: Union[str, Any]
    overlap_experts: Union[bool, Any]
    exchange_parts: Union[int, Any]
    capacity_factor: Union[float, Any]
    expert_imbalance: Union[float, Any]
    synchronization: Union[str, Any]
    local_steps: Union[int, Any]
    parameter_server: Union[ParameterServer, Any]
    collectives: Union[Collectives, Any]
    stages: Union[Table[Any], Any]


class ParameterServer(Fields):
    servers: int
    asynchronous: bool
    staleness: Optional[int]
    backup_workers: int


class Collectives(Fields):
    all_reduce: str
    all_gather: str
    reduce_scatter: str
    all_to_all: str


class Server(Fields):
    model: str
    device: str
    devices: int
    framework: str
    version: str
    weights: str
    requests: int
    replicas: int
    router: str


class SimulateTtft(Fields):
    mean: Quantity
    p50: Quantity
    p90: Quantity
    p99: Quantity


class BestRowTimeOfRequest(Fields):
    outside: Quantity
    queue: Quantity
    prefill: Quantity
    decode: Quantity


class SimulateThroughput(Fields):
    requests_per_s: Quantity
    tokens_per_s: Quantity
    tokens_per_s_per_device: Quantity


class BestRowCache(Fields):
    blocks: int
    block_tokens: int
    occupancy: Quantity
    peak_occupancy: Quantity
    reused: Quantity


class MemoryPerDevice(Figure):
    fits: bool
    verdict: Union[str, Any]
    usable: Quantity
    parts: MemoryPerDeviceParts


class MemoryPerDeviceParts(Fields):
    weights: Quantity
    gradients: Union[Quantity, Any]
    optimizer: Union[Quantity, Any]
    activations: Quantity
    loss: Union[Quantity, Any]
    gathered: Union[Quantity, Any]
    transient: Union[Quantity, Any]
    context: Quantity
    reserve: Union[Quantity, Any]
    cache: Union[Quantity, Any]


class Models(Fields):
    closed: Quantity
    message: Quantity
    all_ranks: Quantity
    contention: float
    without_slowing: Quantity
    simgrid: Quantity
    difference: float


class BestRowJob(Fields):
    workload: str
    parameters: float
    ranks: int
    device: str
    devices: Table[JobDevicesRow]


class JobDevicesRow(Fields):
    device: str
    ranks: int


class Regime(Fields):
    name: str
    known: bool
    stalled_share: float
    stall: Quantity
    source: str


class EnergyParts(Fields):
    devices: Quantity
    hosts: Quantity
    network: Quantity
    cooling: Quantity


class CriticalPathRow(Fields):
    category: str
    time: Quantity
    share: float
    top: Table[TopRow]


class TopRow(Fields):
    name: str
    time: Quantity


class Path(Fields):
    ends_on: int
    ranks: int
    steps: int


class PathPartsRow(Fields):
    kind: str
    part: str
    time: Quantity
    share: float
    ops: Table[PathPartsRowOpsRow]
    more_ops: int


class From(Fields):
    recorded: float
    interpolated: float
    extrapolated: float
    datasheet: float


class PathPartsRowOpsRow(Fields):
    name: str
    time: Quantity


class Host(Fields):
    share: float
    launches_per_layer: Quantity
    kernels_per_layer: Quantity


class ComputeParts(Fields):
    forward_backward: Quantity
    recompute: Quantity
    optimizer: Quantity


class SimulateStagesRow(Fields):
    name: str
    ranks: int
    memory: Quantity
    device: str
    fits: str


class Conditions(Fields):
    source: str


class ParetoRow(Fields):
    plan: Optional[BestRowPlan]
    flags: Any
    devices: Union[int, Any]
    goodput_per_device: Union[Quantity, Any]
    tokens_per_s_per_device: Union[Quantity, Any]
    tokens_per_s_per_user: Union[Quantity, Any]
    mean_ttft: Union[Quantity, Any]
    mean_tpot: Union[Quantity, Any]
    step_time: Union[Quantity, Any]
    memory: Union[Quantity, Any]
    cost: Union[Quantity, Any]
    energy: Union[Quantity, Any]
    carbon: Union[Quantity, Any]


class Launch(Fields):
    framework: str
    text: str
    notes: Table[str]


class MeasureRow(Fields):
    rank: int
    chance: float


class Simgrid(Fields):
    confirmed: int
    left_out: Any


class Overhead(Fields):
    per_range: Quantity
    total: Quantity
    share_of_wall_time: float
    measured: Optional[Measured]


class Measured(Fields):
    pairs: int
    wall_time: Quantity
    wall_share: Quantity


class ProcessesRow(Fields):
    name: str
    kernels: int
    copies: int
    graphs: int
    collectives: int
    ranges: int
    marks: int
    calls: int
    dropped: int
    bytes: int
    command: str
    recorded: bool
    ended_in_order: bool
    device: bool
    facts: Table[Any]


class Before(Fields):
    rows: int
    mean_error: float
    median_error: float
    p90_error: float
    worst_error: float
    bias: float
    interval_coverage: float
    interval_width: Optional[float]
    fitted_rows: int
    blind_rows: int


class Directions(Fields):
    clear: int
    right: int


class PairsRow(Fields):
    name: str
    file: str
    about: str
    status: str
    baseline: Quantity
    measured: Quantity
    predicted: Quantity
    error: float
    inside: bool
    measured_change: float
    predicted_change: float
    direction: str
    rounds: int
    precision: float
    recording_cost: Any


class RecommendJob(Fields):
    workload: str


class Target(Fields):
    output_tokens: float


class RecommendOptionsRow(Fields):
    provider: str
    region: Optional[str]
    market: str
    instance: str
    count: int
    gpus: int
    plan: Optional[BestRowPlan]
    flags: Any
    devices: Union[int, Any]
    meets: bool
    time_to_target: Optional[Quantity]
    cost_to_target: Optional[Quantity]
    storage_cost: Quantity
    transfer_cost: Quantity
    energy: Optional[Quantity]
    carbon: Optional[Quantity]
    cost_per_million_tokens: Union[Optional[Quantity], Any]
    goodput: Union[Quantity, Any]
    throughput: Any
    tokens_per_s_per_user: Union[Quantity, Any]
    ttft: Union[PointsRowTtft, Any]
    tpot: Union[PointsRowTpot, Any]
    notes: Table[str]
    step_time: Union[Quantity, Any]
    all_ranks: Union[bool, Any]
    memory_per_device: Union[MemoryPerDevice, Any]
    stalls: Union[Stalls, Any]
    checkpoints: Union[Checkpoints, Any]


class OptionsRowThroughput(Fields):
    tokens_per_s: Quantity
    tokens_per_s_per_device: Quantity


class PointsRowTtft(Fields):
    mean: Quantity
    p99: Quantity


class PointsRowTpot(Fields):
    mean: Quantity
    p99: Quantity


class Stalls(Fields):
    interconnect: Interconnect
    network: Network
    node_sharing: Optional[NodeSharing]


class Interconnect(Figure):
    share: float


class Network(Figure):
    share: float


class NodeSharing(Figure):
    share: float


class Checkpoints(Fields):
    every: Quantity
    write: Quantity
    slowdown: float


class Offers(Fields):
    seen: int
    ruled_out: int
    impossible: int
    why_impossible: str


class ReplayStepTime(Fields):
    measured: Quantity
    simulated: Quantity


class Error(Fields):
    median: float
    worst: float


class ReplayAdviceRow(Fields):
    change: float
    step_time: Quantity
    meaning: str
    edit: str


class ReplayRanksRow(Fields):
    rank: int
    source: str
    steps_from: str
    steps: Table[ReplayRanksRowStepsRow]


class ReplayRanksRowStepsRow(Fields):
    rank: int
    name: str
    partial: bool
    measured_s: Optional[float]
    simulated_s: Optional[float]
    gpu: ReplayRanksRowStepsRowGpu


class ReplayRanksRowStepsRowGpu(Fields):
    measured_s: float
    simulated_s: float


class SlowRanksRow(Fields):
    rank: int
    op: str
    ratio: float
    since: str
    step_time: Quantity


class Share(Fields):
    policy: str
    caps: Optional[Table[float]]
    quantum: Optional[Quantity]
    change: Optional[Quantity]


class TenantsRow(Fields):
    name: str
    alone: Quantity
    shared: Quantity
    slowdown: Quantity
    loss: Loss
    periods: int
    memory: Optional[Quantity]


class Loss(Fields):
    total: Quantity
    compute: Quantity
    memory_bandwidth: Quantity
    waiting: Quantity
    changes: Quantity
    communication: Quantity


class Dataflow(Fields):
    name: str
    device: str


class SymbolsRow(Fields):
    name: str
    size: float


class Memory(Fields):
    peak: Quantity
    usable: Quantity
    fit: str
    at: str
    parts: MemoryParts


class MemoryParts(Fields):
    inputs: Quantity
    weights: Quantity
    indices: Quantity
    computed: Quantity
    context: Quantity


class SimulateBreakdown(Fields):
    segment_reduce: Union[Quantity, Any]
    segment_softmax: Union[Optional[Quantity], Any]
    matmul: Union[Optional[Quantity], Any]
    elementwise: Union[Quantity, Any]
    waiting: Union[Quantity, Any]
    gather: Union[Optional[Quantity], Any]
    segmented_product: Union[Optional[Quantity], Any]
    total: Union[Quantity, Any]
    compute: Union[Quantity, Any]
    exposed_communication: Union[Quantity, Any]
    memory: Union[Quantity, Any]
    bubble: Union[Quantity, Any]
    input: Union[Quantity, Any]
    launch: Union[Quantity, Any]
    host_bound: Union[Quantity, Any]
    unexplained_wait: Union[Quantity, Any]
    profiler: Union[Quantity, Any]
    idle: Union[Quantity, Any]


class OperationsRow(Fields):
    result: str
    op: str
    kernels: float
    gflop: float
    bytes: Quantity
    time: Quantity
    host: Quantity
    live: Quantity


class SimulateJob(Fields):
    workload: Union[str, Any]
    parameters: Union[float, Any]
    ranks: int
    device: Union[str, Any]
    devices: Union[Table[JobDevicesRow], Any]
    trained_parameters: Union[Optional[float], Any]
    input: Union[str, Any]
    ops: Union[int, Any]


class SimulatePlan(Fields):
    global_batch: float
    dtype: str
    optimizer: str
    gradients: str
    accumulation: str
    microbatch: float
    recompute: Optional[str]
    lora_rank: int
    lora_targets: str
    frozen_weights: str
    data: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    expert_tensor: int
    interleave: int
    split: str
    schedule: str
    zero: int
    gather_weights: str
    offload: Optional[str]
    weights_on: str
    gradients_on: str
    optimizer_on: str
    activations_on: str
    weights_away: float
    optimizer_away: float
    activations_away: float
    placement: str
    sequence_parallel: bool
    overlap_tensor: bool
    asynchronous_tensor: bool
    microbatch_parts: int
    quantised_gathers: bool
    overlap_gradients: bool
    bucket: Quantity
    compression: float
    context_exchange: str
    context_balanced: bool
    expert_exchange: str
    overlap_experts: bool
    exchange_parts: int
    capacity_factor: float
    expert_imbalance: float
    synchronization: str
    local_steps: int
    parameter_server: ParameterServer
    collectives: Collectives
    stages: Table[PlanStagesRow]


class PlanStagesRow(Fields):
    name: str
    layers: int
    data: int
    tensor: int
    recompute: Any


class SingleChangesRow(Fields):
    change: str
    step_time: Quantity
    gain: float
    memory: Quantity
    usable: Quantity
    fits: str


class WhatWouldHelpRow(Fields):
    change: str
    step_time: Quantity


class HostMemory(Fields):
    node: str
    memory: Quantity
    memory_size: Quantity
    nvme: Quantity
    nvme_size: Optional[Quantity]
    fits: bool


class ToTarget(Fields):
    steps: float
    time: Quantity
    cost: Quantity
    energy: Quantity
    carbon: Quantity


class SimulateTimeOfRequest(Fields):
    outside: Quantity
    queue: Quantity
    prefill: Quantity
    decode: Quantity
    wait_for_blocks: Optional[Quantity]
    transfer: Optional[Quantity]


class SimulateCache(Fields):
    blocks: int
    block_tokens: int
    occupancy: Quantity
    peak_occupancy: Quantity
    reused: Quantity
    loaded: Optional[Quantity]


class LoadCurve(Fields):
    of: str
    points: Table[LoadCurvePointsRow]
    saturation: Optional[Quantity]
    held: Any
    slo: Optional[Slo]


class LoadCurvePointsRow(Fields):
    load: Any
    requests_per_s: Quantity
    tokens_per_s_per_device: Quantity
    tokens_per_s_per_user: Quantity
    ttft: PointsRowTtft
    tpot: PointsRowTpot
    within_slo: Optional[float]


class Slo(Fields):
    ttft: Quantity
    tpot: Quantity


class Pools(Fields):
    prefill: Prefill
    decode: Prefill


class Prefill(Fields):
    devices: int
    replicas: int
    busy: Quantity
    occupancy: Quantity
    peak_occupancy: Quantity
    blocks: int
    running: float
    preemptions: float


class Scaling(Fields):
    least: int
    most: float
    start: Quantity
    replicas: Quantity
    peak_replicas: Quantity
    gpu_time: Quantity


class ClassesRow(Fields):
    priority: int
    requests: float
    ttft: PointsRowTtft
    goodput: Quantity
    deadlines_met: Quantity


class SimulateRanksRow(Fields):
    rank: int
    count: int
    total: Quantity
    compute: Quantity
    exposed_communication: Quantity
    memory: Quantity
    bubble: Quantity
    input: Quantity
    launch: Quantity
    host_bound: Quantity
    unexplained_wait: Quantity
    profiler: Quantity
    idle: Quantity


class CollectivesRow(Fields):
    name: str
    kind: str
    ranks: int
    bytes: float
    count: int
    mean_s: float
    slowest_s: float


class CollectiveCostsRow(Fields):
    kind: str
    ranks: int
    why: str


class StudiesRow(Fields):
    name: str
    system: str
    expected: Expected
    source: str
    got: Got
    tolerance: Optional[float]
    verdict: str
    assumed: Table[Any]
    expectations: Table[ExpectationsRow]
    fitted: Table[FittedRow]
    points: Table[StudiesRowPointsRow]


class Expected(Fields):
    measure: str
    low: float
    high: float
    unit: str
    comparison: str


class Got(Fields):
    least: Quantity
    most: Quantity


class ExpectationsRow(Fields):
    expected: Expected
    source: str
    at: Table[AtRow]
    got: Got
    span: Span
    tolerance: float
    kind: str
    verdict: str
    source_kind: Optional[str]
    reason: Optional[str]
    configuration: Optional[str]
    mean_tolerance: Optional[float]
    mean_error: Optional[float]
    worst_error: Optional[float]
    over: Optional[str]
    curve: Optional[Table[CurveRow]]


class AtRow(Fields):
    name: str
    settings: Table[str]


class Span(Fields):
    least: Quantity
    most: Quantity


class CurveRow(Fields):
    setting: str
    published: Quantity
    got: Got
    error: float


class FittedRow(Fields):
    constants: Table[str]
    measure: str
    source: str
    at: Table[Any]
    over: str
    on: Table[str]
    curve: Table[CurveRow]


class StudiesRowPointsRow(Fields):
    parameters: Table[ParametersRow]
    measured: Table[MeasuredRow]
    jobs: Table[PointsRowJobsRow]


class ParametersRow(Fields):
    name: str
    setting: str


class MeasuredRow(Fields):
    name: str
    got: Quantity


class PointsRowJobsRow(Fields):
    name: str
    step_time: Quantity
    ranks: int
    fits: bool


class ValidateSuitesRow(Fields):
    name: str
    rows: int
    mean_error: float
    median_error: float
    p90_error: float
    worst_error: float
    bias: float
    interval_coverage: Optional[float]
    interval_width: Optional[float]
    fitted_rows: int
    blind_rows: int


class ValidateBaseline(Fields):
    file: str
    verdict: str
    suites: Table[BaselineSuitesRow]


class BaselineSuitesRow(Fields):
    name: str
    drift: str
    before: Before
    after: Before


class ValidateRowsRow(Fields):
    suite: str
    name: str
    measured: Quantity
    predicted: Quantity
    error: float
    constants: str


class WhatifBaseline(Fields):
    measured: Quantity
    simulated: Quantity
    error: Error
    breakdown: InspectBreakdown
    path_parts: Table[PathPartsRow]


class InputPipeline(Fields):
    batch: float
    takes_at: str
    replaced: Quantity
    hosts: int
    ranks_per_host: int
    bottleneck: str
    allowed: Quantity


class BenchGpuResult(Result):
    schema: str
    command: str
    store: Optional[str]
    gpus: Table[GpusRow]
    rows: Table[OpCostsRow]
    skipped: Table[SkippedRow]
    left_out: Table[Any]
    interrupted: bool


class CalibrateResult(Result):
    schema: str
    command: str
    device: Union[str, Any]
    fabric: Union[str, Any]
    rows: int
    residual: float
    envelope: Envelope
    widths: Union[Table[float], Any]
    methods: Table[MethodsRow]
    scale: Union[float, Any]
    fastest: Union[float, Any]
    slowest: Union[float, Any]
    fixed_s: Union[float, Any]
    factors: Union[Table[FactorsRow], Any]
    jobs: Union[Table[CalibrateJobsRow], Any]
    next: Union[Table[NextRow], Any]
    warnings: Union[Table[Any], Any]
    warning_remedies: Union[Table[Any], Any]


class CatalogResult(Result):
    schema: str
    command: str
    kind: str
    rows: Table[CatalogRowsRow]


class CheckResult(Result):
    schema: str
    command: str
    verdict: str
    findings: Union[Table[FindingsRow], Any]
    seed: Union[int, Any]
    baseline: Union[Optional[CheckBaseline], Any]
    candidate: Union[Optional[CheckBaseline], Any]
    matched_share: Union[Optional[float], Any]
    step_time: Union[Optional[CheckStepTime], Any]
    quantities: Union[Optional[Quantities], Any]
    cost: Union[Optional[Cost], Any]
    limits: Union[Optional[Table[CheckLimitsRow]], Any]
    ops: Union[Optional[Table[CheckOpsRow]], Any]
    warnings: Union[Optional[Table[Any]], Any]
    warning_remedies: Union[Optional[Table[Any]], Any]
    methods: Table[MethodsRow]
    history: Union[Optional[History], Any]
    store: Union[Optional[Store], Any]
    predictions: Union[Table[PredictionsRow], Any]


class CompareResult(Result):
    schema: str
    command: str
    ratio: Quantity
    compared_by: str
    sides: Table[SidesRow]
    differences: Table[DifferencesRow]
    breakdown: Table[BreakdownRow]
    methods: Table[MethodsRow]


class DoctorResult(Result):
    schema: str
    command: str
    checks: Table[ChecksRow]


class ExplainResult(Result):
    schema: str
    command: str
    terms: Table[TermsRow]


class ExportResult(Result):
    schema: str
    command: str
    files: Files
    step_time: Quantity
    duration: Quantity
    groups: str
    simulate: str


class FleetResult(Result):
    schema: str
    command: str
    never_fits: int
    gpus: int
    policy: str
    placement: str
    makespan_s: float
    utilization: float
    fragmentation: float
    preemptions: int
    queued_s: QueuedS
    slowdown: QueuedS
    jobs: Table[FleetJobsRow]
    methods: Table[MethodsRow]
    on_slices: Any


class HelpResult(Result):
    schema: str
    command: str
    commands: Table[CommandsRow]
    options: Table[CommandsRowOptionsRow]


class ImportResult(Result):
    schema: str
    command: str
    store: str
    ranks: int
    devices: int
    ops: Ops
    steps: int
    problems: Table[ProblemsRow]


class InputResult(Result):
    schema: str
    command: str
    rate: Quantity
    bottleneck: str
    limits: Table[InputLimitsRow]
    unit_of_last_stage: UnitOfLastStage
    stall: Optional[float]
    epoch_time: Optional[Quantity]
    time_to_first: Quantity
    request_cost_per_million_samples_usd: float
    request_cost_per_epoch: Optional[Quantity]
    stages: Table[InputStagesRow]
    advice: Table[InputAdviceRow]
    tuned: Tuned
    methods: Table[MethodsRow]
    measured: Any
    predictions: Optional[Table[Any]]
    pipeline: Any


class InspectResult(Result):
    schema: str
    command: str
    ranks: Union[Table[InspectRanksRow], Any]
    breakdown: Union[InspectBreakdown, Any]
    ops: Union[Table[InspectOpsRow], Any]
    problems: Union[Table[ProblemsRow], Any]
    energy: Union[Optional[Energy], Any]
    notes: Union[Table[str], Any]
    step: Union[Step, Any]
    device: Union[Device, Any]
    microbatches: Union[int, Any]
    shapes: Union[bool, Any]
    training: Union[bool, Any]
    samples: Union[float, Any]
    tokens_per_sample: Union[float, Any]
    parameters: Union[float, Any]
    flops: Union[float, Any]
    layers: Union[Table[LayersRow], Any]
    plan: Union[Optional[Table[PlanRow]], Any]
    cluster: Union[Cluster, Any]
    node_groups: Union[Table[NodeGroupsRow], Any]
    fabric: Union[Table[PartsRow], Any]
    link_types: Union[Table[LinkTypesRow], Any]
    changes: Union[Table[InspectChangesRow], Any]
    op_costs: Union[Table[OpCostsRow], Any]
    plan_unknown: Any


class MigLayoutsResult(Result):
    schema: str
    command: str
    device: str
    compute_slices: int
    memory_slices: int
    layouts: Table[LayoutsRow]
    methods: Table[MethodsRow]


class MigPredictResult(Result):
    schema: str
    command: str
    device: str
    law: Law
    slices: Table[SlicesRow]
    warnings: Table[Any]
    warning_remedies: Table[Any]
    methods: Table[MethodsRow]


class NetworkResult(Result):
    schema: str
    command: str
    device: str
    nodes: int
    fidelity: str
    calibration: Calibration
    timing: str
    points: Table[NetworkPointsRow]
    methods: Table[MethodsRow]
    bands: Optional[Table[BandsRow]]


class PackResult(Result):
    schema: str
    command: str
    goal: str
    placements: Table[PlacementsRow]
    per_job: Table[PerJobRow]
    makespan: Quantity
    makespan_alone: Quantity
    gpu_time: Quantity
    gpu_time_alone: Quantity
    late: Quantity
    late_alone: Quantity
    cost_usd: float
    cost_alone_usd: float
    measure: Table[Any]
    methods: Table[MethodsRow]


class PlanResult(Result):
    schema: str
    command: str
    job: Union[PlanJob, Any]
    objective: Union[str, Any]
    candidates_seen: Union[int, Any]
    candidates_evaluated: Union[int, Any]
    candidates_per_s: Union[float, Any]
    evaluated_per_s: Union[float, Any]
    left_out: Union[Table[Any], Any]
    best: Union[Table[BestRow], Any]
    pareto: Union[Table[ParetoRow], Any]
    notes: Union[Table[str], Any]
    methods: Union[Table[MethodsRow], Any]
    launch: Union[Launch, Any]
    plan: Union[Optional[BestRowPlan], Any]
    flags: Any
    devices: Union[int, Any]
    fidelity: Union[str, Any]
    confirmed: Union[int, Any]
    all_ranks: Union[int, Any]
    measure: Union[Table[MeasureRow], Any]
    simgrid: Union[Optional[Simgrid], Any]
    prefill: Any


class ProfileResult(Result):
    schema: str
    command: str
    folder: str
    exit_code: int
    records: Table[str]
    kernels: int
    copies: int
    graphs: int
    collectives: int
    ranges: int
    marks: int
    calls: int
    dropped: int
    wall_time: Quantity
    overhead: Overhead
    processes: Table[ProcessesRow]
    steps: Any
    kept_steps: Optional[Table[Any]]


class ProveResult(Result):
    schema: str
    command: str
    errors: Before
    directions: Directions
    pairs: Table[PairsRow]
    methods: Table[MethodsRow]


class RecommendResult(Result):
    schema: str
    command: str
    job: RecommendJob
    target: Union[Target, Any]
    options: Table[RecommendOptionsRow]
    pareto: Table[int]
    why: Table[str]
    offers: Offers
    warnings: Table[str]
    warning_remedies: Table[str]
    methods: Table[MethodsRow]


class ReplayResult(Result):
    schema: str
    command: str
    step_time: Union[ReplayStepTime, Any]
    error: Union[Error, Any]
    kernel_start_error: Union[float, Any]
    residual_share: Union[float, Any]
    breakdown: Union[InspectBreakdown, Any]
    critical_path: Union[Table[CriticalPathRow], Any]
    path: Union[Path, Any]
    path_parts: Union[Table[PathPartsRow], Any]
    step_from: Union[From, Any]
    matched_collectives: Union[int, Any]
    unmatched_collectives: Union[int, Any]
    advice: Union[Table[ReplayAdviceRow], Any]
    ranks: Union[Table[ReplayRanksRow], Any]
    problems: Union[Table[Any], Any]
    methods: Table[MethodsRow]
    step_time_if_equal: Union[Optional[Quantity], Any]
    slow_ranks: Union[Optional[Table[SlowRanksRow]], Any]
    share: Union[Share, Any]
    tenants: Union[Table[TenantsRow], Any]
    gain: Union[float, Any]
    notes: Union[Table[str], Any]
    delays: Union[Optional[Table[Any]], Any]
    slow_group: Any
    slice: Any
    slice_memory: Any
    step_time_without_profiler: Any
    usable_memory: Any


class SimulateResult(Result):
    schema: str
    command: str
    dataflow: Union[Dataflow, Any]
    passes: Union[str, Any]
    symbols: Union[Table[SymbolsRow], Any]
    time: Union[Quantity, Any]
    kernels: Union[float, Any]
    gflop: Union[float, Any]
    memory: Union[Memory, Any]
    breakdown: Union[SimulateBreakdown, Any]
    operations: Union[Table[OperationsRow], Any]
    methods: Table[MethodsRow]
    job: Union[SimulateJob, Any]
    plan: Union[SimulatePlan, Any]
    fidelity: Union[str, Any]
    folded: Union[bool, Any]
    step_time: Union[Quantity, Any]
    regime: Union[Regime, Any]
    throughput: Any
    tokens_per_s: Union[Optional[Quantity], Any]
    mfu: Union[Optional[Quantity], Any]
    hfu: Union[Optional[Quantity], Any]
    memory_per_device: Union[MemoryPerDevice, Any]
    energy_per_step: Union[Optional[Quantity], Any]
    energy_parts: Union[Optional[EnergyParts], Any]
    cost_per_step: Union[Optional[Quantity], Any]
    carbon_per_step: Union[Optional[Quantity], Any]
    critical_path: Union[Table[CriticalPathRow], Any]
    path: Union[Path, Any]
    path_parts: Union[Table[PathPartsRow], Any]
    step_from: Union[From, Any]
    host: Union[Host, Any]
    compute_parts: Union[ComputeParts, Any]
    single_changes: Union[Table[SingleChangesRow], Any]
    what_would_help: Union[Table[WhatWouldHelpRow], Any]
    remedies: Union[Table[Any], Any]
    stages: Union[Table[SimulateStagesRow], Any]
    compute_from: Union[From, Any]
    conditions: Union[Conditions, Any]
    applied: Union[Table[str], Any]
    notes: Union[Table[str], Any]
    warnings: Union[Table[str], Any]
    warning_remedies: Union[Table[str], Any]
    host_memory: Union[Optional[HostMemory], Any]
    to_target: Union[Optional[ToTarget], Any]
    server: Union[Server, Any]
    ttft: Union[SimulateTtft, Any]
    tpot: Union[SimulateTtft, Any]
    itl: Union[SimulateTtft, Any]
    end_to_end: Union[SimulateTtft, Any]
    queue: Union[SimulateTtft, Any]
    time_of_request: Union[SimulateTimeOfRequest, Any]
    duration: Union[Quantity, Any]
    goodput: Union[Quantity, Any]
    cache: Union[SimulateCache, Any]
    overloaded: Union[Quantity, Any]
    preemptions: Union[float, Any]
    running: Union[float, Any]
    cost_per_million_tokens: Any
    energy_per_token: Union[Optional[Quantity], Any]
    saturated: Union[bool, Any]
    capacity: Union[Quantity, Any]
    load_curve: Union[LoadCurve, Any]
    transfer: Union[Optional[SimulateTtft], Any]
    held_rate: Union[Optional[Quantity], Any]
    pools: Union[Optional[Pools], Any]
    scaling: Union[Optional[Scaling], Any]
    deadlines_met: Union[Optional[Quantity], Any]
    dropped: Union[Optional[float], Any]
    classes: Union[Optional[Table[ClassesRow]], Any]
    share: Union[Share, Any]
    tenants: Union[Table[TenantsRow], Any]
    gain: Union[float, Any]
    usable_memory: Union[Quantity, Any]
    cluster: Union[str, Any]
    ranks: Union[Table[SimulateRanksRow], Any]
    collectives: Union[Table[CollectivesRow], Any]
    collective_costs: Union[Table[CollectiveCostsRow], Any]
    messages: Union[int, Any]
    bytes_sent: Union[float, Any]


class StudyResult(Result):
    schema: str
    command: str
    studies: Table[StudiesRow]
    methods: Table[MethodsRow]


class ValidateResult(Result):
    schema: str
    command: str
    suites: Table[ValidateSuitesRow]
    baseline: ValidateBaseline
    rows: Table[ValidateRowsRow]
    skipped: Table[Any]
    methods: Table[MethodsRow]
    choices: Optional[Table[Any]]


class WhatifResult(Result):
    schema: str
    command: str
    step_time: Union[Quantity, Any]
    change: Union[float, Any]
    baseline: Union[WhatifBaseline, Any]
    error: Union[Error, Any]
    kernel_start_error: Union[float, Any]
    residual_share: Union[float, Any]
    breakdown: Union[InspectBreakdown, Any]
    critical_path: Union[Table[CriticalPathRow], Any]
    path: Union[Path, Any]
    path_parts: Union[Table[PathPartsRow], Any]
    step_from: Union[From, Any]
    ranks: Union[Table[ReplayRanksRow], Any]
    warnings: Union[Table[Any], Any]
    warning_remedies: Union[Table[Any], Any]
    problems: Union[Table[Any], Any]
    methods: Table[MethodsRow]
    input_pipeline: Union[Optional[InputPipeline], Any]
    share: Union[Share, Any]
    tenants: Union[Table[TenantsRow], Any]
    gain: Union[float, Any]
    notes: Optional[Table[str]]
    delays: Any
    usable_memory: Any
