#include "models/workload/lift_units.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <vector>

#include "models/workload/lift_pairs.h"
#include "profiler/trace/collective_names.h"

namespace rehearse::workload::lifting {
namespace {

using trace::GpuOp;
using trace::HostKind;
using trace::HostOp;

struct Passes {
  std::size_t count = 1;
  Nanoseconds second{INT64_MAX};  ///< when the second backward pass began
};

/// By unit; the optimizer's belong to none. A forward unit after a backward one begins a pass.
std::vector<std::size_t> pass_of(const std::vector<Unit>& units) {
  std::vector<std::size_t> passes;
  std::size_t pass = 0;
  bool backward = false;
  for (const Unit& unit : units) {
    if (unit.phase == Phase::kForward && backward) {
      ++pass;
      backward = false;
    }
    if (unit.phase == Phase::kBackward) backward = true;
    passes.push_back(pass);
  }
  return passes;
}

/// The same for the schedules of pipelines, which run several forward passes before the first
/// backward one. Backward passes follow one another in the order of the forward ones: each begins
/// with a unit of a later forward pass than all before it. Empty if there is one pass alone.
std::vector<std::size_t> pass_in_pipeline(const std::vector<Unit>& units) {
  std::vector<std::size_t> ends;  // by pass: its last forward unit
  std::vector<std::size_t> passes(units.size(), 0);
  bool recording = false;  // the backward pass has begun, and not yet gone below its first unit
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (units[u].phase != Phase::kBackward && units[u].phase != Phase::kRecompute) continue;
    if (const std::optional<std::size_t> forward = units[u].forward) {
      if (ends.empty() || (*forward > ends.back() && !recording)) {
        ends.push_back(*forward);
        recording = true;
      } else if (*forward > ends.back()) {
        ends.back() = *forward;
      } else if (*forward < ends.back()) {
        recording = false;
      }
    }
    passes[u] = ends.empty() ? 0 : ends.size() - 1;
  }
  if (ends.size() < 2) return {};
  // Forward passes are alike, but their last units need not have a backward one.
  const auto all = static_cast<std::size_t>(std::count_if(
      units.begin(), units.end(), [](const Unit& unit) { return unit.phase == Phase::kForward; }));
  if (all % ends.size() != 0) return {};
  std::size_t seen = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (units[u].phase == Phase::kForward) passes[u] = seen++ / (all / ends.size());
    if (units[u].phase == Phase::kOptimizer) passes[u] = ends.size() - 1;
  }
  return passes;
}

/// Whether the forward parts of all passes are the same operators on the same shapes.
bool alike(const std::vector<Unit>& units, const std::vector<std::size_t>& passes) {
  std::vector<std::vector<const Unit*>> forward(1 +
                                                *std::max_element(passes.begin(), passes.end()));
  for (std::size_t u = 0; u < units.size(); ++u)
    if (units[u].phase == Phase::kForward) forward[passes[u]].push_back(&units[u]);
  return std::all_of(forward.begin(), forward.end(), [&](const auto& pass) {
    return std::equal(pass.begin(), pass.end(), forward[0].begin(), forward[0].end(),
                      [](const Unit* a, const Unit* b) {
                        return a->name == b->name && a->operands == b->operands;
                      });
  });
}

/// Merges all passes into the first: units keep their place there and collect device ops and time
/// of all. Units of later passes only (adding to a gradient) are appended. Passes with different
/// forward parts belong to different networks: they stay separate, as one pass.
/// REQUIRES: `units` in order of start, paired.
Passes fold_passes(std::vector<Unit>& units) {
  if (units.empty()) return {};
  std::vector<std::size_t> passes = pass_of(units);
  if (passes.back() == 0 || !alike(units, passes)) {
    passes = pass_in_pipeline(units);
    if (passes.empty() || !alike(units, passes)) return {};
  }
  Passes found{.count = 1 + *std::max_element(passes.begin(), passes.end())};
  using Key = std::tuple<Phase, std::string_view, std::size_t>;
  std::map<Key, std::size_t> first;  // by what it is in a pass: its place among `saved`
  std::map<std::tuple<std::size_t, Phase, std::string_view>, std::size_t> seen;
  std::vector<std::size_t> place(units.size());
  std::vector<Unit> saved, later;
  std::vector<std::size_t> of_later;  // units
  for (std::size_t u = 0; u < units.size(); ++u) {
    Unit& unit = units[u];
    if (passes[u] > 0 && unit.phase == Phase::kBackward)
      found.second = std::min(found.second, unit.start);
    const Key key{unit.phase, unit.name, seen[{passes[u], unit.phase, unit.name}]++};
    const auto at = first.find(key);
    if (passes[u] == 0 || unit.phase == Phase::kOptimizer) {
      place[u] = saved.size();
      first.emplace(key, saved.size());
      saved.push_back(unit);
    } else if (at != first.end()) {
      place[u] = at->second;
      Unit& into = saved[at->second];
      into.time += unit.time;
      into.device.insert(into.device.end(), unit.device.begin(), unit.device.end());
    } else {
      of_later.push_back(u);
      later.push_back(unit);
    }
  }
  for (std::size_t k = 0; k < later.size(); ++k) place[of_later[k]] = saved.size() + k;
  saved.insert(saved.end(), later.begin(), later.end());
  for (Unit& unit : saved)
    if (unit.forward) unit.forward = place[*unit.forward];
  units = std::move(saved);
  return found;
}

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
        const bool node = is_backward_node(r, op);
        if (!node && !is_accumulate(r, op)) continue;
        Backward& backward = backward_[op.thread.index()];
        if (node) backward.nodes.push_back(i);
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
    out_.microbatches = passes.count;
    place_gradients(passes.second);
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

  void place_gradients(Nanoseconds until) {
    for (const HostIndex i : accumulated_) {
      if (r_.host(i).start >= until) continue;  // summed again
      const std::vector<Operand> operands = operands_of(r_, r_.host(i));
      if (operands.empty() || !operands.front().is_tensor()) continue;
      Gradient gradient{.parameter = operands.front(), .unit = {}};
      for (std::size_t u = 0; u < out_.units.size() && out_.units[u].start <= r_.host(i).start; ++u)
        if (out_.units[u].phase == Phase::kBackward) gradient.unit = u;
      out_.gradients.push_back(std::move(gradient));
    }
  }

  const Recording& r_;
  const replay::Step& step_;
  std::map<std::uint32_t, Backward> backward_;  ///< by thread
  Nanoseconds end_{INT64_MIN};                  ///< of backward
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
  return Finder(recording, step).find();
}

}  // namespace rehearse::workload::lifting
