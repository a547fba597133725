// The critical path divided by purpose: parts that add up to the path, each with its ops and the
// source of their times.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/time.h"
#include "sim/program/origin.h"

namespace rehearse::program {

/// The share of one op in a piece of time: a weight, and its 90 % interval as factors.
struct PathShare {
  PartKind kind;
  std::string part;  ///< for people: "matrix products", "data-parallel all_reduce"
  std::string op;    ///< "up, forward"
  double weight = 1;
  double low = 1, high = 1;
  Provenance provenance = Provenance::kExtrapolated;
};

struct PathOp {
  std::string name;
  Estimate<Seconds> time;
};

struct PathPart {
  PartKind kind;
  std::string name;
  Picoseconds time{0};
  Estimate<Seconds> estimate;       ///< with the worst provenance of more than 1 % of the time
  std::array<Picoseconds, 4> from;  ///< of `time`, by Provenance: adds up to it
  std::vector<PathOp> ops = {};     ///< the largest first
};

struct PathParts {
  std::vector<PathPart> parts;  ///< by kind; within a kind, the largest first
  std::uint32_t ends_on = 0;    ///< the rank on which it ends
  std::uint32_t ranks = 1;      ///< ranks that it crosses
  std::uint32_t steps = 1;      ///< steps that it covers

  Picoseconds total() const;
  /// Shares of the total, by Provenance; zeros of an empty path.
  std::array<double, 4> shares_by_provenance() const;
};

class PathSum {
 public:
  /// Divides `time` in proportion to the weights, to the picosecond: the parts add up to the
  /// added time. REQUIRES: shares with a sum above zero.
  void add(Picoseconds time, const std::vector<PathShare>& shares);
  void add(Picoseconds time, const PathShare& share) { add(time, std::vector{share}); }
  std::vector<PathPart> parts() const;

 private:
  struct Sum {
    Picoseconds time{0};
    double low = 0, high = 0;  ///< seconds
    std::array<Picoseconds, 4> from = {Picoseconds(0), Picoseconds(0), Picoseconds(0),
                                       Picoseconds(0)};
    void add(Picoseconds part, const PathShare& share);
    Estimate<Seconds> estimate() const;
  };
  struct Part : Sum {
    std::map<std::string, Sum, std::less<>> ops;
  };
  std::map<std::pair<PartKind, std::string>, Part> parts_;
};

}  // namespace rehearse::program
