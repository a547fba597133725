// A trace to which the readers under test add their ranks.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "profiler/trace/recorder.h"

namespace rehearse::test {

class Ranks {
 public:
  /// Has the signature of ingest::NewRank.
  trace::Recorder& next(std::string source) {
    recorder_.reset();
    trace::Rank& rank = ranks_.emplace_back();
    rank.info.source = std::move(source);
    rows_.emplace(rank);
    return recorder_.emplace(names, problems, rank, *rows_);
  }

  std::size_t size() const { return ranks_.size(); }
  const trace::Rank& operator[](std::size_t i) const { return ranks_[i]; }
  std::string name(NameId id) const { return std::string(names[id]); }

  /// The number of problems of a kind, and the position of the first.
  std::uint64_t count(trace::ProblemKind kind) const {
    for (const trace::Problem& problem : problems.list())
      if (problem.kind == kind) return problem.count;
    return 0;
  }
  std::string first(trace::ProblemKind kind) const {
    for (const trace::Problem& problem : problems.list())
      if (problem.kind == kind) return problem.first;
    return "";
  }

  NamePool names;
  trace::Problems problems;

 private:
  std::deque<trace::Rank> ranks_;  // a deque, because it does not move its elements
  std::optional<trace::RankRows> rows_;
  std::optional<trace::Recorder> recorder_;
};

}  // namespace rehearse::test
