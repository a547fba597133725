#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <fmt/core.h>

#include "models/workload/lift_steps.h"
#include "profiler/trace/recorder.h"

namespace rehearse::workload::lifting {
namespace {

using trace::HostKind;
using trace::HostOp;

constexpr std::string_view kModule = "nn.Module: ";

bool is_module(const Recording& r, const HostOp& op) {
  return op.kind == HostKind::kFrame && r.name(op).starts_with(kModule);
}

/// Ranges that name parts of the program instead of parts of a model are no layers.
bool is_layer_range(const Recording& r, const HostOp& op) {
  if (op.kind != HostKind::kAnnotation || op.collective) return false;
  const std::string_view name = r.name(op);
  if (trace::is_step_name(name)) return false;
  for (const std::string_view other : {"## ", "Optimizer.", "enumerate(DataLoader)",
                                       "nccl:", "DistributedDataParallel.", "gradient"})
    if (name.starts_with(other)) return false;
  return true;
}

/// "Conv2d_3" -> "Conv2d".
std::string_view class_of(std::string_view name) {
  while (!name.empty() &&
         (std::isdigit(static_cast<unsigned char>(name.back())) || name.back() == ' '))
    name.remove_suffix(1);
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

/// Modules may be named by their path: "layers.3.mlp" within "layers.3" is "mlp" there.
std::string_view local_name(std::string_view name, std::string_view parent) {
  if (!parent.empty() && name.size() > parent.size() + 1 && name.starts_with(parent) &&
      name[parent.size()] == '.')
    name.remove_prefix(parent.size() + 1);
  return name;
}

/// Containers whose class does not describe their content.
bool is_container(std::string_view class_name) {
  return class_name == "Sequential" || class_name == "ModuleList" || class_name == "ModuleDict";
}

/// Whether a unit begins a layer: work with its own parameters. Norms have few and belong to
/// others.
bool begins_layer(const Unit& unit) {
  switch (role_of(unit.name)) {
    case Role::kLinear:
    case Role::kConvolution:
    case Role::kGather: return true;
    case Role::kMatrix:
      return unit.operands.empty() ||
             std::none_of(unit.operands.begin(), unit.operands.end(),
                          [](const Operand& o) { return o.extents.size() > 2; });
    default: return false;
  }
}

/// A call of a module or a range of the forward pass, with those inside it.
struct Node {
  std::string_view name;
  std::string_view local = {};  ///< in the module that it is called from: "3" of "layers.3"
  std::vector<std::size_t> children = {};
  Nanoseconds time{0};
  bool works = false;  ///< has a unit that begins a layer, or one without an operator
  bool layer = false;
};

class Tree {
 public:
  template <class Wanted>
  Tree(const Recording& r, const StepUnits& step, Wanted wanted) {
    nodes_.push_back({.name = ""});  // the root
    for (std::size_t u = 0; u < step.units.size(); ++u) {
      const Unit& unit = step.units[u];
      if (unit.phase != Phase::kForward) continue;
      std::size_t at = 0;
      bool any = false;
      for (const HostIndex i : chain_of(r, unit.op)) {
        if (!wanted(r.host(i))) continue;
        any = true;
        const auto [found, is_new] = index_.try_emplace(i, nodes_.size());
        if (is_new) {
          std::string_view name = r.name(r.host(i));
          if (name.starts_with(kModule)) name.remove_prefix(kModule.size());
          nodes_[at].children.push_back(nodes_.size());
          nodes_.push_back({.name = name, .local = local_name(name, nodes_[at].name)});
        }
        at = found->second;
        path_[u].push_back(at);
      }
      total_ += unit.time;
      if (!any) continue;
      const bool works = begins_layer(unit) || r.host(unit.op).kind != trace::HostKind::kOperator;
      for (const std::size_t node : path_[u]) {
        nodes_[node].works = nodes_[node].works || works;
        nodes_[node].time += unit.time;
      }
    }
    mark(0);
  }

  /// Whether the layers are informative: most of the forward pass is in layers, and most of it in
  /// no single layer.
  bool tells() const {
    Nanoseconds in_layers{0}, largest{0};
    for (const Node& node : nodes_)
      if (node.layer) {
        in_layers += node.time;
        largest = std::max(largest, node.time);
      }
    return in_layers * 2 > total_ && largest * 2 <= total_;
  }

  std::optional<std::size_t> layer_of(std::size_t unit) const {
    const auto path = path_.find(unit);
    if (path == path_.end()) return std::nullopt;
    for (const std::size_t node : path->second)
      if (nodes_[node].layer) return node;
    return std::nullopt;
  }
  std::string_view name(std::size_t node) const { return nodes_[node].name; }

 private:
  std::vector<std::size_t> working_children(const Node& node) const {
    std::vector<std::size_t> working;
    for (const std::size_t child : node.children) {
      if (!nodes_[child].works) continue;
      // The children of a container become its parent's.
      if (is_container(class_of(nodes_[child].local)) || numbers_its_parts(nodes_[child])) {
        const std::vector<std::size_t> inner = working_children(nodes_[child]);
        working.insert(working.end(), inner.begin(), inner.end());
      } else {
        working.push_back(child);
      }
    }
    return working;
  }

  /// As in a sequence of modules that are named by their paths: "layer1.0", "layer1.1".
  bool numbers_its_parts(const Node& node) const {
    return !node.children.empty() &&
           std::all_of(node.children.begin(), node.children.end(), [&](std::size_t child) {
             const std::string_view local = nodes_[child].local;
             return local.find_first_not_of("0123456789") == std::string_view::npos;
           });
  }

  /// The number of children in the commonest class of compound modules.
  std::size_t blocks_in(const Node& node) const {
    std::map<std::string_view, std::size_t> compound;
    for (const std::size_t child : working_children(node))
      if (!working_children(nodes_[child]).empty()) ++compound[class_of(nodes_[child].local)];
    std::size_t most = 0;
    for (const auto& [name, count] : compound) most = std::max(most, count);
    return most;
  }

  /// The classes of everything in it that works.
  std::string structure(const Node& node) const {
    std::string text(class_of(node.local));
    text += '(';
    for (const std::size_t child : working_children(node)) text += structure(nodes_[child]);
    return text + ')';
  }

  /// Children of a node that occur several times are blocks, unless they contain blocks themselves:
  /// several alike inside, if the outer ones are not alike or the inner ones are more than a pair
  /// (of attentions). A single compound child is opened.
  void mark(std::size_t at) {
    const std::vector<std::size_t> children = working_children(nodes_[at]);
    struct Alike {
      std::size_t count = 0;
      std::set<std::string> structures = {};
    };
    std::map<std::string_view, Alike> alike;
    for (const std::size_t child : children) {
      Alike& of_class = alike[class_of(nodes_[child].local)];
      ++of_class.count;
      of_class.structures.insert(structure(nodes_[child]));
    }
    for (const std::size_t child : children) {
      const Alike& of_class = alike[class_of(nodes_[child].local)];
      const std::size_t inside = blocks_in(nodes_[child]);
      const bool holds_blocks = inside > 2 || (inside == 2 && of_class.structures.size() > 1);
      const bool compound = !working_children(nodes_[child]).empty();
      if (!compound || (of_class.count > 1 && !holds_blocks))
        nodes_[child].layer = true;
      else
        mark(child);
    }
  }

  std::vector<Node> nodes_;
  std::map<HostIndex, std::size_t> index_;
  std::map<std::size_t, std::vector<std::size_t>> path_;  ///< by unit
  Nanoseconds total_{0};                                  ///< of the forward pass
};

/// Assigns units of the forward pass to layers. `begins` returns a unit's key if it has its own
/// layer: units with one key are one layer, regardless of units between them.
template <class Key>
void assign(const StepUnits& step, Layers& layers, Key key) {
  std::map<std::size_t, std::size_t> layer_of_key;
  std::optional<std::size_t> current;
  std::vector<std::size_t> before_first;
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    if (unit.phase != Phase::kForward) continue;
    if (current && layers.chunks[*current] != unit.chunk) current.reset();
    if (const std::optional<std::pair<std::size_t, std::string>> found = key(u)) {
      const auto [at, is_new] = layer_of_key.try_emplace(found->first, layers.names.size());
      if (is_new) {
        layers.names.push_back(found->second);
        layers.chunks.push_back(unit.chunk);
      }
      current = at->second;
    }
    before_first.push_back(u);
    if (!current) continue;
    for (const std::size_t each : before_first) layers.of_unit[each] = current;
    before_first.clear();
  }
  if (!layers.names.empty())
    for (const std::size_t u : before_first) layers.of_unit[u] = layers.names.size() - 1;
}

void from_tree(const StepUnits& step, const Tree& tree, Layers& layers) {
  // Ranges may share a name; such ranges are numbered.
  std::map<std::string_view, std::set<std::size_t>> alike;
  for (std::size_t u = 0; u < step.units.size(); ++u)
    if (const auto node = tree.layer_of(u)) alike[tree.name(*node)].insert(*node);
  assign(step, layers, [&](std::size_t u) -> std::optional<std::pair<std::size_t, std::string>> {
    const auto node = tree.layer_of(u);
    if (!node) return std::nullopt;
    const std::string_view name = tree.name(*node);
    const std::set<std::size_t>& same = alike[name];
    if (same.size() == 1) return std::pair(*node, std::string(name));
    return std::pair(*node,
                     fmt::format("{} {}", name, 1 + std::distance(same.begin(), same.find(*node))));
  });
}

void from_operators(const StepUnits& step, Layers& layers) {
  std::map<std::string_view, std::size_t> count;
  assign(step, layers, [&](std::size_t u) -> std::optional<std::pair<std::size_t, std::string>> {
    const Unit& unit = step.units[u];
    if (!begins_layer(unit)) return std::nullopt;
    const std::string_view name = short_name(unit.name);
    return std::pair(u, fmt::format("{} {}", name, ++count[name]));
  });
  if (layers.names.empty()) {
    layers.names.emplace_back("all");
    layers.chunks.push_back(0);
    for (std::size_t u = 0; u < step.units.size(); ++u)
      if (step.units[u].phase == Phase::kForward) layers.of_unit[u] = 0;
  }
}

/// The layer of backward work from the names of enclosing program ranges, if no operator determines
/// it.
std::optional<std::size_t> by_range(const Recording& r, const Unit& unit, const Layers& layers) {
  for (const HostIndex i : chain_of(r, unit.op))
    for (std::size_t layer = 0; layer < layers.names.size(); ++layer)
      if (r.host(i).kind == HostKind::kAnnotation && r.name(r.host(i)) == layers.names[layer])
        return layer;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(LayerSource source) {
  switch (source) {
    case LayerSource::kModules: return "calls of modules";
    case LayerSource::kRanges: return "ranges of the program";
    case LayerSource::kOperators: return "operators with parameters";
  }
  return "?";
}

Layers find_layers(const Recording& r, const StepUnits& step) {
  Layers layers{LayerSource::kOperators, {}, {}, {}};
  layers.of_unit.resize(step.units.size());
  const Tree modules(r, step, [&](const HostOp& op) { return is_module(r, op); });
  if (modules.tells()) {
    layers.source = LayerSource::kModules;
    from_tree(step, modules, layers);
  } else if (const Tree ranges(r, step, [&](const HostOp& op) { return is_layer_range(r, op); });
             ranges.tells()) {
    layers.source = LayerSource::kRanges;
    from_tree(step, ranges, layers);
  } else {
    from_operators(step, layers);
  }
  // Backward: with the forward unit; where that is unknown, with the backward unit before it.
  std::optional<std::size_t> last;
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    if (unit.phase != Phase::kBackward && unit.phase != Phase::kRecompute) continue;
    std::optional<std::size_t> layer;
    if (unit.forward) layer = layers.of_unit[*unit.forward];
    if (!layer) layer = by_range(r, unit, layers);
    if (!layer) layer = last;
    if (!layer && !layers.names.empty()) layer = layers.names.size() - 1;
    layers.of_unit[u] = last = layer;
  }
  return layers;
}

}  // namespace rehearse::workload::lifting
