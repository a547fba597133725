#include "sim/program/rank_builder.h"

#include <algorithm>
#include <functional>

#include "sim/base/check.h"

namespace rehearse::program {

OpIndex append(RankProgram& program, const ProgramOp& op, std::span<const OpIndex> after) {
  std::vector<OpIndex>& all = program.dependencies;
  std::vector<std::uint32_t>& first = program.first_dependency;
  first.resize(program.ops.size() + 1, first.back());
  all.insert(all.end(), after.begin(), after.end());
  const auto begin = all.begin() + first.back();
  // Most are in order already.
  if (std::adjacent_find(begin, all.end(), std::greater_equal<>()) != all.end()) {
    std::sort(begin, all.end());
    all.erase(std::unique(begin, all.end()), all.end());
  }
  first.push_back(static_cast<std::uint32_t>(all.size()));
  program.ops.push_back(op);
  return static_cast<OpIndex>(program.ops.size() - 1);
}

void erase_dependencies(RankProgram& program,
                        const std::function<bool(OpIndex op, OpIndex before)>& gone) {
  std::uint32_t kept = 0, begin = 0;
  for (OpIndex op = 0; op < program.ops.size(); ++op) {
    const std::uint32_t end = program.first_dependency[op + 1];
    for (std::uint32_t d = begin; d < end; ++d)
      if (const OpIndex before = program.dependencies[d]; !gone(op, before))
        program.dependencies[kept++] = before;
    begin = end;
    program.first_dependency[op + 1] = kept;
  }
  program.dependencies.resize(kept);
}

std::uint32_t RankBuilder::add(Stream stream) {
  program_.streams.push_back(std::move(stream));
  return static_cast<std::uint32_t>(program_.streams.size() - 1);
}

std::uint32_t RankBuilder::add(Pool pool) {
  program_.pools.push_back(pool);
  return static_cast<std::uint32_t>(program_.pools.size() - 1);
}

std::uint32_t RankBuilder::add(const ProgramOp& op) {
  program_.ops.push_back(op);
  return static_cast<std::uint32_t>(program_.ops.size() - 1);
}

void RankBuilder::set_work(OpIndex op, double work) {
  if (op >= program_.work.size()) program_.work.resize(op + 1, 0);
  program_.work[op] = work;
}

std::uint32_t RankBuilder::add(const ProgramOp& op, Recorded recorded) {
  REHEARSE_CHECK(program_.recorded.size() == program_.ops.size());
  program_.recorded.push_back(recorded);
  return add(op);
}

RankProgram RankBuilder::build() && {
  const std::size_t n = program_.ops.size();
  std::vector<std::uint32_t>& first = program_.first_dependency;
  first.resize(n + 1, first.back());  // ops that were added have none so far
  if (added_.empty()) return std::move(program_);
  std::vector<std::uint32_t> end(n + 1, 0);  // of the dependencies of the op before
  for (std::size_t i = 0; i < n; ++i) end[i + 1] = first[i + 1] - first[i];
  for (const auto& [op, before] : added_) ++end[op + 1];
  for (std::size_t i = 0; i < n; ++i) end[i + 1] += end[i];
  std::vector<std::uint32_t> all(end.back());
  std::vector<std::uint32_t> at(end.begin(), end.end() - 1);
  for (std::size_t i = 0; i < n; ++i)
    for (std::uint32_t d = first[i]; d < first[i + 1]; ++d) all[at[i]++] = program_.dependencies[d];
  for (const auto& [op, before] : added_) all[at[op]++] = before;
  auto kept = all.begin();
  for (std::size_t i = 0; i < n; ++i) {
    const auto begin = all.begin() + end[i], stop = all.begin() + end[i + 1];
    std::sort(begin, stop);
    first[i] = static_cast<std::uint32_t>(kept - all.begin());
    kept = std::move(begin, std::unique(begin, stop), kept);
  }
  first[n] = static_cast<std::uint32_t>(kept - all.begin());
  all.erase(kept, all.end());
  program_.dependencies = std::move(all);
  added_.clear();
  return std::move(program_);
}

}  // namespace rehearse::program
