// Reads a set of jobs and the GPUs for them (docs/formats/pack.md).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/sharing/pack.h"
#include "models/sharing/shipped_pairs.h"

namespace rehearse::cli {

/// The basis of a job's rates on slices.
enum class SliceBasis : std::uint8_t {
  kGiven,  ///< the rates are given in the file
  kSweep,  ///< the law of a slice, from steps timed over batch sizes
  kStep,   ///< the law of a slice, from a step and the host's part of it
  kShare,  ///< no data: the share of the compute slices
};

/// The share of their speed that two jobs on one GPU keep, and its basis.
struct PairShares {
  enum class Basis : std::uint8_t {
    kMeasured,   ///< the file has this pair
    kFamilies,   ///< pairs of both families were measured, here or for the shipped law
    kStrangers,  ///< on this GPU, only pairs of other families
    kSliced,     ///< no data: time slicing
  };
  double first, second;
  Basis basis;
};

class PackPairs {
 public:
  PackPairs() = default;
  /// `known` are the measured pairs of the file, by the indices of their jobs. `shipped` may be
  /// null.
  PackPairs(const std::vector<sharing::PackJob>& jobs,
            std::map<std::pair<std::size_t, std::size_t>, std::pair<double, double>> known,
            const sharing::ShippedPairs* shipped);

  /// Returns nothing if neither the pair nor its jobs are known.
  std::optional<PairShares> shares(std::size_t a, std::size_t b) const;
  bool measured(std::size_t a, std::size_t b) const { return known_.contains(std::minmax(a, b)); }
  const sharing::ShippedPairs* shipped() const { return shipped_; }

 private:
  std::vector<std::optional<sharing::Resident>> jobs_;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<double, double>> known_;
  const sharing::ShippedPairs* shipped_ = nullptr;
  std::shared_ptr<const sharing::PairLaw> law_;
  bool any_pair_ = false;
};

struct PackFile {
  std::string device = {};
  sharing::Site site;  ///< its pairs do not refer to this struct
  sharing::Goal goal = sharing::Goal::kThroughput;
  std::optional<double> usd_per_gpu_hour = {};
  std::vector<sharing::PackJob> jobs = {};
  std::vector<SliceBasis> slice_basis = {};  ///< by job, for slices without a given rate
  std::shared_ptr<const PackPairs> pairs = {};

  SliceBasis basis_on(std::size_t job, const std::string& slice) const;
};

/// Fails with every mistake in the file, one line each.
Result<PackFile> load_pack(const std::filesystem::path& path);
/// Reads the same from text in memory; `name` is the file name in messages, and `folder` the base
/// of relative paths.
Result<PackFile> parse_pack(const std::string& text, std::string name,
                            const std::filesystem::path& folder);

}  // namespace rehearse::cli
