// How often `rehearse check` is wrong: runs made up with known changes, judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/validation/studies/page.h"

namespace rehearse::cli {

/// Pairs of runs of 20 steps with noise of 1 %, judged with the default limit of 3 %.
struct GateCase {
  std::string noise;  ///< how the steps of a run differ
  double change;      ///< of the candidate, true
  std::size_t pairs = 0, failed = 0, passed = 0;
  std::size_t covered = 0;     ///< the change lies in its 90 % interval
  std::vector<double> errors;  ///< (1 + estimated) / (1 + true) - 1
};

/// Pairs of runs of many ops: one false alarm among all of them counts.
struct OpsCase {
  double change;  ///< of one op, true
  std::size_t pairs = 0, false_alarms = 0, found = 0;
};

/// Series of runs whose levels differ by 1 %, judged with the default limit.
struct HistoryCase {
  std::string series;
  std::size_t runs = 0, count = 0, failed = 0, jumps = 0, drifts = 0;
};

/// Candidates held against a store of accepted runs, as `rehearse check --history FILE` does, where
/// the levels of runs of one job differ by half a percent in addition to the noise of steps. A
/// store of one run is a baseline alone.
struct StoreCase {
  std::size_t runs;  ///< in the store
  double change;     ///< of the candidate, true
  std::size_t count = 0, failed = 0, passed = 0;
};

/// Pairs of runs of few steps, with noise of 1 %.
struct FewCase {
  std::size_t baseline, candidate;  ///< steps
  double change;
  std::size_t pairs = 0, failed = 0, passed = 0;
};

struct GateAccuracy {
  std::vector<GateCase> pairs;
  std::vector<FewCase> few;
  std::vector<StoreCase> stores;
  std::vector<OpsCase> ops;
  std::vector<HistoryCase> histories;
};

/// `runs`: pairs per case; a fifth as many of ops and of series. The same seed gives the same.
GateAccuracy measure_gate_accuracy(std::size_t runs, std::uint64_t seed);

SuiteSummary summarize(const GateAccuracy& accuracy);
Table gate_accuracy_table(const GateAccuracy& accuracy);
/// The other tables, for people.
std::string gate_accuracy_text(const GateAccuracy& accuracy);
std::string gate_section(const GateAccuracy& accuracy);

}  // namespace rehearse::cli
