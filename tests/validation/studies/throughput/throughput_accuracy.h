// How well steps and throughputs of whole jobs are predicted from a few measured ones: on other
// batches, on more devices, on other kinds of devices.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "tests/validation/studies/throughput_scaling.h"

namespace rehearse::cli {

struct ThroughputRow {
  std::string name;  ///< "aws_t4 bert 4+4, batch 12"
  double error;      ///< predicted ÷ measured - 1, of the step or of the throughput
  bool covered;      ///< measured inside the 90 % interval
};

/// Rows that were predicted in one way, of one kind.
struct ThroughputCase {
  std::string suite;                     ///< "pollux, a few steps of the job"
  std::string group;                     ///< "aws_t4 bert"
  std::vector<ThroughputRow> rows = {};  ///< none was fitted
  std::size_t fitted = 0;                ///< rows that gave constants
};

struct ThroughputAccuracy {
  std::vector<ThroughputCase> cases;
  std::vector<std::string> left_out;  ///< what was not predicted, and why
  /// Fitted to all of Lambda's rows: the shipped ones (tests/validation/studies/throughput_scaling.h).
  std::optional<compute::TimeShares> shares;

  /// The case, made where it is not there yet.
  ThroughputCase& of(const std::string& suite, const std::string& group);
};

/// Of every table that the folder has. Fails where a table is wrong.
Result<ThroughputAccuracy> measure_throughput_accuracy(const std::filesystem::path& data);

// One per table; nothing where the folder does not have it.
Status measure_pollux(const std::filesystem::path& data, ThroughputAccuracy& accuracy);
Status measure_gavel(const std::filesystem::path& data, ThroughputAccuracy& accuracy);
Status measure_lambda(const std::filesystem::path& data, ThroughputAccuracy& accuracy);

/// REQUIRES: measured above zero; Q a number or a quantity.
template <class Q>
ThroughputRow compared(std::string name, const Estimate<Q>& predicted, Q measured) {
  return {std::move(name), predicted.value / measured - 1,
          predicted.low <= measured && measured <= predicted.high};
}

}  // namespace rehearse::cli
