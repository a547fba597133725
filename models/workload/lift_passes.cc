#include "models/workload/lift_passes.h"

#include <algorithm>
#include <map>

namespace rehearse::workload::lifting {
namespace {

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

/// Whether the forward parts of all passes are the same operators on the same shapes.
bool alike(const std::vector<Unit>& units, const std::vector<std::size_t>& passes) {
  std::vector<std::vector<const Unit*>> forward(passes.back() + 1);
  for (std::size_t u = 0; u < units.size(); ++u)
    if (units[u].phase == Phase::kForward) forward[passes[u]].push_back(&units[u]);
  return std::all_of(forward.begin(), forward.end(), [&](const auto& pass) {
    return std::equal(pass.begin(), pass.end(), forward[0].begin(), forward[0].end(),
                      [](const Unit* a, const Unit* b) {
                        return a->name == b->name && a->operands == b->operands;
                      });
  });
}

}  // namespace

Passes fold_passes(std::vector<Unit>& units) {
  if (units.empty()) return {};
  const std::vector<std::size_t> passes = pass_of(units);
  if (passes.back() == 0 || !alike(units, passes)) return {};
  Passes found{.count = passes.back() + 1};
  using Key = std::tuple<Phase, std::string_view, std::size_t>;
  std::map<Key, std::size_t> first;  // by what it is in a pass: its place among `saved`
  std::map<std::pair<Phase, std::string_view>, std::size_t> seen;
  std::vector<std::size_t> place(units.size());
  std::vector<Unit> saved, later;
  std::vector<std::size_t> of_later;  // units
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (u > 0 && passes[u] != passes[u - 1]) seen.clear();
    Unit& unit = units[u];
    if (passes[u] > 0) found.second = std::min(found.second, unit.start);
    const Key key{unit.phase, unit.name, seen[{unit.phase, unit.name}]++};
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

}  // namespace rehearse::workload::lifting
