#include "models/workload/lift_units.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "models/workload/lift_steps.h"
#include "profiler/trace/collective_names.h"

namespace rehearse::workload::lifting {
namespace {

using trace::GpuOp;
using trace::HostKind;
using trace::HostOp;

bool is_operator(const HostOp& op) { return op.kind == HostKind::kOperator; }

bool is_accumulate(const Recording& r, const HostOp& op) {
  return is_operator(op) && r.name(op) == "torch::autograd::AccumulateGrad";
}

bool range_says(const Recording& r, const HostOp& op, std::string_view word) {
  if (op.kind != HostKind::kAnnotation) return false;
  std::string lower(r.name(op));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find(word) != std::string::npos;
}

/// The time in which a thread computes gradients: from the first backward operator of the step to
/// the last.
struct Backward {
  std::vector<HostIndex> nodes;  ///< in order of start
  Nanoseconds end{INT64_MIN};
};

class Finder {
 public:
  Finder(const Recording& r, const replay::Step& step) : r_(r), step_(step) {
    for (const replay::HostThread& thread : r.threads())
      for (const HostIndex i : thread.ops) {
        const HostOp& op = r.host(i);
        if (op.start < step.start || op.start >= step.end) continue;
        if (is_operator(op)) computes_.insert(op.thread.index());
        const bool node = is_backward_node(r, op);
        if (!node && !is_accumulate(r, op)) continue;
        Backward& backward = backward_[op.thread.index()];
        if (node) backward.nodes.push_back(i);
        begin_ = std::min(begin_, op.start);
        backward.end = std::max(backward.end, op.end());
        if (is_accumulate(r, op)) accumulated_.push_back(i);
        end_ = std::max(end_, op.end());
      }
  }

  StepUnits find() {
    std::vector<GpuIndex> device = device_ops();
    for (const GpuIndex i : device) place(i);
    out_.kernels = static_cast<double>(device.size());
    measure_overlap(device);
    std::stable_sort(out_.units.begin(), out_.units.end(),
                     [](const Unit& a, const Unit& b) { return a.start < b.start; });
    pair_backward(r_, step_, out_.units);
    const Passes passes = fold_passes(out_.units);
    out_.microbatches = passes.microbatches;
    out_.chunks = passes.chunks;
    place_gradients(passes.later);
    return std::move(out_);
  }

 private:
  /// In order of launch. Work of a stream before its first op with a recorded launch was launched
  /// before the recording, by an earlier step.
  std::vector<GpuIndex> device_ops() const {
    std::vector<std::pair<Nanoseconds, GpuIndex>> found;
    std::vector<char> earlier(r_.rank().gpu_ops.size(), 0);
    for (const replay::Stream& stream : r_.streams()) {
      const auto launched = std::find_if(stream.ops.begin(), stream.ops.end(),
                                         [&](GpuIndex i) { return r_.launcher(i).has_value(); });
      if (launched == stream.ops.end()) continue;
      for (auto i = stream.ops.begin(); i != launched; ++i) earlier[*i] = 1;
    }
    for (std::size_t i = 0; i < r_.rank().gpu_ops.size(); ++i) {
      const auto op = static_cast<GpuIndex>(i);
      if (earlier[i]) continue;
      const auto call = r_.launcher(op);
      const Nanoseconds at = call ? r_.host(*call).start : r_.gpu(op).start;
      if (at >= step_.start && at < step_.end) found.push_back({at, op});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<GpuIndex> ops;
    for (const auto& [at, op] : found) ops.push_back(op);
    return ops;
  }

  bool communicates(const GpuOp& op, const std::vector<HostIndex>& chain) const {
    if (op.collective || trace::is_communication_kernel(r_.name(op))) return true;
    return std::any_of(chain.begin(), chain.end(), [&](HostIndex i) {
      // DistributedDataParallel copies gradients into and out of its buckets.
      return r_.host(i).collective || r_.name(r_.host(i)).find("reducer::") != std::string::npos;
    });
  }

  void place(GpuIndex i) {
    const GpuOp& op = r_.gpu(i);
    DeviceTime& time = out_.device;
    time.busy += op.duration;
    const auto call = r_.launcher(i);
    const std::vector<HostIndex> chain = call ? chain_of(r_, *call) : std::vector<HostIndex>{};
    if (communicates(op, chain)) {
      time.communication += op.duration;
      if (call) add_message(i, chain);
    } else if (op.direction == trace::CopyDirection::kHostToDevice ||
               op.direction == trace::CopyDirection::kDeviceToHost) {
      time.copies += op.duration;
    } else if (!call) {
      time.unknown += op.duration;
    } else {
      time.layers += op.duration;
      Unit& unit = unit_of(chain, op);
      unit.device.push_back(i);
      unit.time += op.duration;
    }
  }

  /// The innermost backward operator of a chain, by its place.
  std::optional<std::size_t> node_in(const std::vector<HostIndex>& chain) const {
    std::optional<std::size_t> node;
    for (std::size_t k = 0; k < chain.size(); ++k)
      if (is_backward_node(r_, r_.host(chain[k])) || is_accumulate(r_, r_.host(chain[k]))) node = k;
    return node;
  }

  void add_message(GpuIndex i, const std::vector<HostIndex>& chain) {
    const std::optional<std::size_t> node = node_in(chain);
    Unit unit{.op = chain.back(),
              .name = {},
              .phase = Phase::kForward,
              .start = r_.host(chain.back()).start};
    set_phase(unit, chain, node ? *node + 1 : 0, node);
    // A thread that only communicates does so for the thread that computes gradients.
    const std::uint32_t thread = r_.host(chain.back()).thread.index();
    if (unit.phase == Phase::kForward && !computes_.contains(thread) && unit.start >= begin_ &&
        unit.start < end_)
      unit.phase = Phase::kBackward;
    out_.messages.push_back({i, unit.phase});
  }

  Unit& unit_of(const std::vector<HostIndex>& chain, const GpuOp& op) {
    const std::optional<std::size_t> node = node_in(chain);
    const std::size_t from = node ? *node + 1 : 0;
    const std::size_t at = choose(chain, from, node);
    const auto [found, is_new] = unit_at_.try_emplace(chain[at], out_.units.size());
    if (!is_new) return out_.units[found->second];
    const HostOp& host = r_.host(chain[at]);
    Unit unit{.op = chain[at],
              .name = is_operator(host) ? r_.name(host) : r_.name(op),
              .phase = Phase::kForward,
              .start = host.start};
    set_phase(unit, chain, from, node);
    unit.operands = operands_of(r_, host);
    if (says_no_types(host))
      if (const auto type = type_of_kernel(r_.name(op))) typed_ = *type;
    for (Operand& operand : unit.operands) {
      if (operand.is_floating()) typed_ = operand;
      // Lists of tensors do not state their type; it is taken from the previous computation.
      if (!operand.is_tensor() || operand.element > 0) continue;
      operand.element = typed_.element;
      operand.dtype = typed_.dtype;
    }
    out_.units.push_back(std::move(unit));
    return out_.units.back();
  }

  /// The outermost operator after `from` whose name has a role; else the outermost of the
  /// framework's own, which may call one another; else the innermost one.
  std::size_t choose(const std::vector<HostIndex>& chain, std::size_t from,
                     std::optional<std::size_t> node) const {
    std::optional<std::size_t> framework, any;
    for (std::size_t k = from; k < chain.size(); ++k) {
      const HostOp& op = r_.host(chain[k]);
      if (!is_operator(op)) continue;
      if (role_of(r_.name(op)) != Role::kPlain) {
        // Two gradients, each by its own operator.
        for (std::size_t inner = k + 1; inner < chain.size(); ++inner)
          if (const std::string_view name = r_.name(r_.host(chain[inner]));
              name.ends_with("backward_input") || name.ends_with("backward_weight"))
            return inner;
        return k;
      }
      if (!framework && r_.name(op).starts_with("aten::")) framework = k;
      any = k;
    }
    if (framework) return *framework;
    if (any) return *any;
    return node ? *node : chain.size() - 1;
  }

  void set_phase(Unit& unit, const std::vector<HostIndex>& chain, std::size_t from,
                 std::optional<std::size_t> node) {
    const HostOp& last = r_.host(chain.back());
    const auto backward = backward_.find(last.thread.index());
    if (node) {
      unit.phase = Phase::kBackward;
      unit.node = chain[*node];
      if (is_accumulate(r_, r_.host(chain[*node]))) unit.node = node_before(unit.start, last);
      for (std::size_t k = from; k < chain.size(); ++k)
        if (is_forward_node(r_.host(chain[k]))) unit.phase = Phase::kRecompute;
      return;
    }
    for (const HostIndex i : chain) {
      const HostOp& op = r_.host(i);
      if (range_says(r_, op, "optimizer")) return void(unit.phase = Phase::kOptimizer);
      if (backward_.empty() && range_says(r_, op, "backward"))
        return void(unit.phase = Phase::kBackward);
    }
    const bool forward = std::any_of(chain.begin(), chain.end(),
                                     [&](HostIndex i) { return is_forward_node(r_.host(i)); });
    if (backward != backward_.end() && !forward && !backward->second.nodes.empty() &&
        unit.start >= r_.host(backward->second.nodes.front()).start &&
        unit.start < backward->second.end) {
      unit.phase = Phase::kBackward;
      unit.node = node_before(unit.start, last);
    } else if (!backward_.empty() && unit.start >= end_) {
      unit.phase = Phase::kOptimizer;
    }
  }

  bool says_no_types(const HostOp& host) const {
    return host.inputs && r_.name(r_.rank().inputs[host.inputs->index()].types).empty();
  }

  std::optional<HostIndex> node_before(Nanoseconds time, const HostOp& on_thread_of) const {
    const auto backward = backward_.find(on_thread_of.thread.index());
    if (backward == backward_.end()) return std::nullopt;
    const std::vector<HostIndex>& nodes = backward->second.nodes;
    const auto next =
        std::upper_bound(nodes.begin(), nodes.end(), time,
                         [&](Nanoseconds t, HostIndex i) { return t < r_.host(i).start; });
    if (next == nodes.begin()) return std::nullopt;
    return *std::prev(next);
  }

  void measure_overlap(const std::vector<GpuIndex>& device) {
    std::vector<std::pair<Nanoseconds, Nanoseconds>> spans;
    for (const GpuIndex i : device) spans.push_back({r_.gpu(i).start, r_.gpu(i).end()});
    std::sort(spans.begin(), spans.end());
    if (spans.empty()) return;
    Nanoseconds covered{0}, until = spans.front().first;
    for (const auto& [start, end] : spans) {
      if (end <= until) continue;
      covered += end - std::max(start, until);
      until = end;
    }
    out_.device.overlapped = out_.device.busy - covered;
    out_.first = spans.front().first;
    out_.last = until;
  }

  /// Those of the first microbatch: others sum the same gradients again, after backward units of
  /// `later` ones.
  void place_gradients(const std::vector<Nanoseconds>& later) {
    for (const HostIndex i : accumulated_) {
      const Nanoseconds at = r_.host(i).start;
      std::optional<std::size_t> unit;
      Nanoseconds since{INT64_MIN};
      for (std::size_t u = 0; u < out_.units.size() && out_.units[u].start <= at; ++u)
        if (out_.units[u].phase == Phase::kBackward) {
          unit = u;
          since = out_.units[u].start;
        }
      const auto next = std::upper_bound(later.begin(), later.end(), at);
      if (next != later.begin() && *std::prev(next) >= since) continue;
      const std::vector<Operand> operands = operands_of(r_, r_.host(i));
      if (operands.empty() || !operands.front().is_tensor()) continue;
      out_.gradients.push_back({.parameter = operands.front(), .unit = unit});
    }
  }

  const Recording& r_;
  const replay::Step& step_;
  std::map<std::uint32_t, Backward> backward_;     ///< by thread
  Nanoseconds begin_{INT64_MAX}, end_{INT64_MIN};  ///< of backward
  std::set<std::uint32_t> computes_;               ///< threads with operators
  std::vector<HostIndex> accumulated_;
  std::unordered_map<HostIndex, std::size_t> unit_at_;
  Operand typed_ = {
      .extents = {}, .element = 4, .dtype = Dtype::kFp32};  ///< the last of known type
  StepUnits out_;
};

}  // namespace

bool is_backward_node(const Recording& r, const HostOp& op) {
  if (!is_operator(op)) return false;
  if (op.sequence && op.forward_thread.value_or(0) != 0) return true;
  std::string_view name = r.name(op);
  if (name.find("AccumulateGrad") != std::string_view::npos) return false;
  if (name.starts_with("autograd::engine::evaluate_function: ")) return true;
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())))
    name.remove_suffix(1);
  return name.ends_with("Backward");
}

bool is_forward_node(const HostOp& op) {
  return is_operator(op) && op.sequence && op.forward_thread.value_or(0) == 0;
}

std::vector<HostIndex> chain_of(const Recording& r, HostIndex op) {
  std::vector<HostIndex> chain;
  for (std::optional<HostIndex> i = op; i; i = r.parent(*i)) chain.push_back(*i);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::vector<Operand> operands_of(const Recording& r, const HostOp& op) {
  if (!op.inputs) return {};
  const trace::Inputs& inputs = r.rank().inputs[op.inputs->index()];
  return parse_operands(r.name(inputs.shapes), r.name(inputs.types));
}

StepUnits find_units(const Recording& recording, const replay::Step& step) {
  StepUnits units = Finder(recording, step).find();
  join_ring(recording, units);
  return units;
}

}  // namespace rehearse::workload::lifting
