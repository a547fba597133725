#include "models/dataflow/run.h"

#include <algorithm>

#include "sim/cluster/catalog.h"

namespace rehearse::dataflow {
namespace {

using workload::Op;
using workload::OpKind;

/// The rounding and the free blocks of a caching allocator, as a share of live memory: as
/// memory::Assumptions.
constexpr double kReserve = 0.05;

/// A block of threads adds the rows of a segment one after another, each after a latency of memory
/// unless several are in flight. V100: 375 clocks of 1.53 GHz (Jia and others, Dissecting the NVIDIA
/// Volta GPU Architecture via Microbenchmarking, 2018); in the interval, four in flight to twice as
/// long.
constexpr double kRowLatency = 0.245e-6, kLeastOfRow = 0.25, kMostOfRow = 2;
/// Bytes that memory delivers at once: several narrow rows, unless each is somewhere else.
constexpr double kSector = 32;

class Sizes {
 public:
  Sizes(const Dataflow& flow, Bytes cache)
      : flow_(flow), element_(workload::bytes_of(flow.dtype)), cache_(cache.b()) {}

  double of(const Value& value) const { return value.elements() * element_; }
  double of(const Index& index) const { return index.rows.size * flow_.index_entry.b(); }

  /// A row for each entry of the index.
  double gathered(const Value& value, const Index& index) const {
    constexpr double kHeld = 0.5;
    const double source = of(value);
    const bool is_held = source <= kHeld * cache_;
    return of(index) + (is_held ? source : index.rows.size * value.row_elements() * element_);
  }

  double read(const Operand& operand) const {
    const Value& value = flow_.value(operand);
    return operand.by ? gathered(value, flow_.indices[*operand.by]) : of(value);
  }

  double operation(const Operation& op) const {
    double reads = 0;
    for (const Operand& operand : op.of) reads += read(operand);
    const double written = of(flow_.result(op));
    const double index = op.by ? of(flow_.indices[*op.by]) : 0;
    switch (op.kind) {
      case Kind::kGather:
        if (op.compiled && flow_.gathers == Gathers::kBySource) return reads + index + 2 * written;
        return gathered(flow_.value(op.of[0]), flow_.indices[*op.by]) + written;
      case Kind::kScatter: return reads + index + 2 * written;  // cleared, then added to
      case Kind::kReduce: return reads + index + written;
      case Kind::kSoftmax: return 2 * reads + index + written;  // maximum and sum, then quotients
      case Kind::kMatmul:
      case Kind::kSegmented:
      case Kind::kElementwise:
      case Kind::kConcatenate:
      case Kind::kWeightGradient: break;
    }
    return reads + written;
  }

 private:
  const Dataflow& flow_;
  double element_;
  double cache_;
};

/// A product by a matrix for each row reads that matrix for one row only: memory bounds it.
bool is_row_by_row(const Dataflow& flow, const Operation& op) {
  const Extents& x = flow.value(op.of[0]).extents;
  const Extents& w =
      op.kind == Kind::kMatmul ? flow.value(op.of[1]).extents : flow.result(op).extents;
  return x.size() == 2 && w.size() == 3 && w[0] == x[0];
}

/// The operation on one of `runs` equal groups of its rows; its kernels are those of one of
/// `count` segments.
Op op_of(const Dataflow& flow, const Operation& op, Bytes bytes, double runs, double& count) {
  count = 1;
  Op priced{.name = "", .kind = OpKind::kElementwise, .dtype = flow.dtype};
  priced.bytes = bytes / runs;
  const bool product =
      op.kind == Kind::kMatmul || op.kind == Kind::kSegmented || op.kind == Kind::kWeightGradient;
  if (!product || is_row_by_row(flow, op)) return priced;
  const Extents& x = flow.value(op.of[0]).extents;
  priced.kind = OpKind::kGemm;
  priced.bytes = Bytes::b(0);
  double rows = x[x.size() - 2].size / runs;
  if (x.size() == 3) priced.batch = x[0].size;
  if (op.by) {
    double& segments = flow.segments == Segments::kEach ? count : priced.batch;
    segments = flow.indices[*op.by].of.size;
    rows /= segments;
  }
  rows = std::max(rows, 1.0);
  priced.m = rows;
  priced.n = flow.result(op).extents.back().size;
  priced.k = x.back().size;
  if (op.kind == Kind::kWeightGradient) {
    priced.m = x.back().size;
    priced.k = rows;
  }
  return priced;
}

Kernel kernel_of(const Dataflow& flow, const Operation& op, const compute::OpCost& cost,
                 const Sizes& sizes, const Host& host) {
  const auto grouped = [&](const Operand& operand) {
    const auto from = flow.producer(operand.value);
    return from && flow.operations[*from].groups;
  };
  const double runs = op.groups ? op.groups->size : 1;
  double count = 1, copies = 0, copied = 0;
  const bool joins = op.kind == Kind::kSegmented && flow.segments == Segments::kEach;
  if (joins) {
    copies = 1;
    copied = 2 * sizes.of(flow.result(op));
  }
  if (op.groups)
    for (const Operand& operand : op.of)
      if (const Value& value = flow.value(operand); !value.is_weight() && !grouped(operand)) {
        ++copies;
        copied += 2 * sizes.of(value);
      }
  const Bytes bytes = Bytes::b(sizes.operation(op));
  const Op priced = op_of(flow, op, bytes, runs, count);
  Estimate<Seconds> time = cost.predicted(priced) * (runs * count);
  if (op.kind == Kind::kReduce && flow.indices[*op.by].longest) {
    double waits = 0;  // for each row
    for (const Operand& operand : op.of) {
      const double row = flow.value(operand).row_elements() * workload::bytes_of(flow.dtype);
      waits = std::max(waits, operand.by ? 1 : std::min(row / kSector, 1.0));
    }
    const Seconds serial = Seconds::s(kRowLatency * waits * *flow.indices[*op.by].longest);
    time = {std::max(time.value, serial), std::max(time.low, serial * kLeastOfRow),
            std::max(time.high, serial * kMostOfRow), time.provenance};
  }
  if (copies > 0) {
    const Op copy{.name = "",
                  .kind = OpKind::kElementwise,
                  .dtype = flow.dtype,
                  .bytes = Bytes::b(copied / copies / runs)};
    const Estimate<Seconds> one = cost.predicted(copy) * (runs * copies);
    time = {time.value + one.value, time.low + one.low, time.high + one.high,
            std::max(time.provenance, one.provenance)};
  }
  // A copy is an operation of its own.
  const Estimate<Seconds> by_operation = host.operation * (runs * (1 + copies)),
                          by_kernel = host.kernel * (runs * (count - 1));
  return {.name = flow.result(op).name,
          .kind = op.kind,
          .runs = runs,
          .kernels = runs * (count + copies),
          .flops = flops_of(flow, op),
          .bytes = bytes + Bytes::b(copied),
          .time = time,
          .host = {by_operation.value + by_kernel.value, by_operation.low + by_kernel.low,
                   by_operation.high + by_kernel.high, by_operation.provenance},
          .live = Bytes::b(0)};
}

/// When the device ends, if all times are at this end of their intervals. The kernels of one
/// operation are alike.
Seconds end_of(const std::vector<Kernel>& kernels, Seconds Estimate<Seconds>::*which) {
  Seconds launched = Seconds::s(0), ended = Seconds::s(0);
  for (const Kernel& kernel : kernels) {
    const Seconds host = kernel.host.*which, device = kernel.time.*which;
    const Seconds first = launched + host / kernel.kernels;
    launched += host;
    ended = std::max(std::max(first, ended) + device, launched + device / kernel.kernels);
  }
  return ended;
}

struct Lives {
  std::vector<std::size_t> last;  ///< the last operation that needs a value, by value
};

Lives lives_of(const Dataflow& flow) {
  Lives lives{std::vector<std::size_t>(flow.values.size(), 0)};
  for (std::size_t i = 0; i < flow.operations.size(); ++i) {
    lives.last[flow.operations[i].result] = i;
    for (const Operand& operand : flow.operations[i].of) lives.last[operand.value] = i;
  }
  for (const ValueId result : flow.results) lives.last[result] = flow.operations.size();
  return lives;
}

void set_memory(const Dataflow& flow, const Sizes& sizes, Run& run) {
  MemoryParts parts = run.parts;
  for (const Value& value : flow.values) {
    if (value.role == Role::kInput) parts.inputs += Bytes::b(sizes.of(value));
    if (value.role == Role::kWeight) parts.weights += Bytes::b(sizes.of(value));
  }
  for (const Index& index : flow.indices) parts.indices += Bytes::b(sizes.of(index));
  const Lives lives = lives_of(flow);
  std::vector<std::vector<ValueId>> ends(flow.operations.size() + 1);
  run.peak_at = 0;
  double computed = 0;
  for (std::size_t i = 0; i < flow.operations.size(); ++i) {
    const ValueId result = flow.operations[i].result;
    computed += sizes.of(flow.values[result]);
    ends[lives.last[result]].push_back(result);
    parts.computed = Bytes::b(computed);
    run.kernels[i].live = parts.live();
    if (i == 0 || parts.live() > run.parts.live()) {
      run.parts = parts;
      run.peak_at = i;
    }
    for (const ValueId ended : ends[i]) computed -= sizes.of(flow.values[ended]);
  }
  const Bytes live = run.parts.live(), all = live + run.parts.context;
  run.peak = {all, all, all + live * kReserve, Provenance::kDatasheet};
  run.fit = run.peak.value > run.usable  ? memory::Fit::kDoesNotFit
            : run.peak.high > run.usable ? memory::Fit::kBorderline
                                         : memory::Fit::kFits;
}

}  // namespace

double Run::kernel_count() const {
  double count = 0;
  for (const Kernel& kernel : kernels) count += kernel.kernels;
  return count;
}

Flops Run::flops() const {
  Flops sum = Flops::flop(0);
  for (const Kernel& kernel : kernels) sum += kernel.flops;
  return sum;
}

Bytes bytes_of(const Dataflow& flow, const Operation& op, Bytes cache) {
  return Bytes::b(Sizes(flow, cache).operation(op));
}

Result<Run> run(const Dataflow& flow, std::string_view device, const Host& host) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device));
  const compute::OpCost cost = TRY(compute::OpCost::on(device, {}));
  const memory::Device memory = memory::device_of(gpu);
  const Sizes sizes(flow, compute::facts_of(gpu).l2.value_or(Bytes::b(0)));
  Run run{.kernels = {},
          .time = {Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded},
          .waiting = Seconds::s(0),
          .peak = {Bytes::b(0), Bytes::b(0), Bytes::b(0), Provenance::kDatasheet},
          .peak_at = 0,
          .parts = {.context = memory::context_of(memory, 0)},
          .usable = memory.usable,
          .fit = memory::Fit::kFits};
  Seconds busy = Seconds::s(0);
  for (const Operation& op : flow.operations) {
    run.kernels.push_back(kernel_of(flow, op, cost, sizes, host));
    busy += run.kernels.back().time.value;
    run.time.provenance = std::max(run.time.provenance, run.kernels.back().time.provenance);
  }
  run.time.value = end_of(run.kernels, &Estimate<Seconds>::value);
  run.time.low = end_of(run.kernels, &Estimate<Seconds>::low);
  run.time.high = end_of(run.kernels, &Estimate<Seconds>::high);
  run.waiting = run.time.value - busy;
  set_memory(flow, sizes, run);
  return run;
}

}  // namespace rehearse::dataflow
