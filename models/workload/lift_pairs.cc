#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "models/workload/lift_steps.h"

namespace rehearse::workload::lifting {
namespace {

using trace::HostOp;

/// The forward units from `first` to `last` correspond to one backward operator.
struct Undone {
  std::size_t first;
  std::size_t last;
};

/// Rows, columns and contracted extent, sorted by size: the same for a product and for both
/// gradients.
std::optional<std::array<double, 3>> product_of(const Unit& unit) {
  const std::optional<Factors> factors = factors_of(unit.name, unit.operands);
  if (!factors) return std::nullopt;
  const bool flat = factors->b.extents.size() == 2;
  const double k = factors->a.last();
  std::array<double, 3> extents = {flat ? factors->a.elements() / k : factors->a.last(1), k,
                                   factors->b.last()};
  std::sort(extents.begin(), extents.end());
  return extents;
}

bool is_matrix(Role role) { return role == Role::kMatrix || role == Role::kLinear; }

class Pairs {
 public:
  Pairs(const Recording& r, const replay::Step& step, std::vector<Unit>& units)
      : r_(r), step_(step), units_(units) {}

  void find() {
    by_number();
    by_order();
    recomputed();
  }

 private:
  /// The last operator with this number that began before: nested operators share a number, and so
  /// do those that need no gradient.
  std::optional<HostIndex> numbered(std::uint32_t sequence, Nanoseconds before) const {
    std::optional<HostIndex> last;
    if (const auto found = numbered_.find(sequence); found != numbered_.end())
      for (const HostIndex i : found->second)
        if (r_.host(i).start < before && (!last || r_.host(i).start >= r_.host(*last).start))
          last = i;
    return last;
  }

  /// The units within an operator; else the unit that encloses it or, if it launched nothing, the
  /// unit before it.
  std::optional<Undone> undone_by(HostIndex op) const {
    const HostOp& host = r_.host(op);
    std::optional<Undone> inside;
    std::optional<std::size_t> before;
    for (std::size_t u = 0; u < units_.size() && units_[u].start < host.end(); ++u) {
      const Unit& unit = units_[u];
      if (unit.phase == Phase::kBackward || r_.host(unit.op).thread != host.thread) continue;
      before = u;
      if (unit.start >= host.start) inside = Undone{inside ? inside->first : u, u};
    }
    for (std::optional<HostIndex> i = op; i; i = r_.parent(*i))
      if (const auto found = index_.find(*i); found != index_.end())
        return Undone{found->second, found->second};
    if (inside) return inside;
    if (before) return Undone{*before, *before};
    return std::nullopt;
  }

  void by_number() {
    for (std::size_t u = 0; u < units_.size(); ++u) index_.emplace(units_[u].op, u);
    for (const replay::HostThread& thread : r_.threads())
      for (const HostIndex i : thread.ops)
        if (const HostOp& op = r_.host(i);
            is_forward_node(op) && op.start >= step_.start && op.start < step_.end)
          numbered_[*op.sequence].push_back(i);
    std::map<HostIndex, std::optional<Undone>> of_node;
    std::map<HostIndex, std::size_t> reached;
    for (Unit& unit : units_) {
      if (!unit.node) continue;
      const HostOp& node = r_.host(*unit.node);
      const auto [at, is_new] = of_node.try_emplace(*unit.node);
      if (is_new && node.sequence)
        if (const auto op = numbered(*node.sequence, node.start)) at->second = undone_by(*op);
      if (!at->second) continue;
      const auto [walked, first] = reached.try_emplace(*unit.node, at->second->last);
      walked->second = walk(unit, {at->second->first, walked->second});
      unit.forward = walked->second;
    }
  }

  /// The position of a backward unit among the forward units of its operator, last to first: the
  /// next unit of its role and, for a product, of its extents. Elementwise units stay at the
  /// current position. A product has two gradients.
  std::size_t walk(const Unit& unit, Undone left) {
    const Role role = role_of(unit.name);
    if (left.first == left.last || role == Role::kPlain || unit.phase != Phase::kBackward)
      return left.last;
    const auto wanted = is_matrix(role) ? product_of(unit) : std::nullopt;
    for (std::size_t f = left.last + 1; f-- > left.first;) {
      const Unit& forward = units_[f];
      const Role other = role_of(forward.name);
      const bool same = is_matrix(role) ? is_matrix(other) : other == role;
      if (!same || forward.phase == Phase::kBackward) continue;
      if (wanted && product_of(forward) != wanted) continue;
      std::size_t& taken = gradients_[f];
      if (taken == (is_matrix(role) ? 2 : 1)) continue;
      ++taken;
      return f;
    }
    return left.last;
  }

  /// Without numbers: each operator corresponds to the nearest one of its role before the previous
  /// match.
  void by_order() {
    std::optional<std::size_t> at;
    std::optional<HostIndex> last_node;
    for (Unit& unit : units_) {
      if (unit.phase != Phase::kBackward) continue;
      if (unit.forward) {
        at = unit.forward;
      } else {
        Role role = role_of(unit.name);
        if (role == Role::kPlain && unit.node) role = role_of(r_.name(r_.host(*unit.node)));
        const bool same_node = last_node && unit.node == last_node;
        if (role != Role::kPlain && !same_node)
          for (std::size_t f = at.value_or(units_.size()); f-- > 0;) {
            const Role other = role_of(units_[f].name);
            if (units_[f].phase != Phase::kForward ||
                !(other == role || (is_matrix(role) && is_matrix(other))))
              continue;
            at = f;
            break;
          }
        unit.forward = at;
      }
      last_node = unit.node;
    }
  }

  /// Checkpoints run a part of the forward pass again, in its order. It is matched from its end,
  /// the position of backward when it requested the recomputation.
  void recomputed() {
    std::size_t end = units_.size();
    for (std::size_t u = units_.size(); u-- > 0;) {
      if (units_[u].phase != Phase::kRecompute) {
        end = units_.size();
        continue;
      }
      const std::size_t from = std::min(end, units_[u].forward.value_or(end - 1) + 1);
      units_[u].forward.reset();
      for (std::size_t f = from; f-- > 0;) {
        const Unit& forward = units_[f];
        if (forward.phase != Phase::kForward || forward.name != units_[u].name ||
            forward.operands != units_[u].operands)
          continue;
        units_[u].forward = f;
        end = f;
        break;
      }
    }
    // Backward of a recomputed unit is backward of the original one.
    for (Unit& unit : units_)
      if (unit.phase == Phase::kBackward && unit.forward &&
          units_[*unit.forward].phase == Phase::kRecompute)
        unit.forward = units_[*unit.forward].forward;
  }

  const Recording& r_;
  const replay::Step& step_;
  std::vector<Unit>& units_;
  std::unordered_map<HostIndex, std::size_t> index_;             ///< units by operator
  std::map<std::uint32_t, std::vector<HostIndex>> numbered_;     ///< forward operators by number
  std::unordered_map<std::size_t, std::size_t> gradients_ = {};  ///< by forward unit, walked over
};

}  // namespace

void pair_backward(const Recording& recording, const replay::Step& step, std::vector<Unit>& units) {
  Pairs(recording, step, units).find();
}

}  // namespace rehearse::workload::lifting
