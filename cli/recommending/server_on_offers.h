// Evaluates a server on instances of the catalog: its best settings on each offer, for
// cost::recommend. The target is an amount of output tokens under the load of the job.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "cli/commands/served_load.h"
#include "cli/output/value.h"
#include "cli/planning/server_space.h"
#include "cli/recommending/search_offers.h"
#include "cost/recommend.h"
#include "sim/base/once.h"

namespace rehearse::cli {

/// What is shown of a server on an offer.
struct ServerOnOffer {
  ServerSetting setting;
  std::string flags;  ///< in words
  Value fields;       ///< of the setting, for programs
  std::uint32_t devices, used;
  Estimate<double> goodput, tokens_per_s, tokens_per_user;
  Estimate<Seconds> mean_ttft, p99_ttft, mean_tpot, p99_tpot;
  serving::CacheSpace memory;
};

/// REQUIRES: it outlives its evaluator.
class ServerOnOffers {
 public:
  /// Reads the file on the devices of one of the offers, to find its mistakes now.
  static Result<ServerOnOffers> load(const std::filesystem::path& path, double tokens,
                                     const cost::Offer& first);

  const ServeFile& job() const { return job_; }
  /// Output tokens of the target.
  double tokens() const { return tokens_; }
  /// The first evaluation has the flags of the job, or the usual ones; the second searches them.
  /// Offers of equal devices in nodes of equal size share an evaluation.
  cost::Evaluator evaluator(const SpreadOf& spread) const;
  /// What an evaluation found, by its detail.
  const ServerOnOffer& found(std::size_t detail) const { return kept_->found[detail]; }

 private:
  ServerOnOffers(std::filesystem::path path, std::string text, double tokens, ServeFile job)
      : path_(std::move(path)), text_(std::move(text)), tokens_(tokens), job_(std::move(job)) {}

  /// Whether kernels of the device's architecture, or of its family, were measured.
  bool has_basis(const std::string& device) const;
  Result<cost::Evaluation> evaluate(const cost::Offer& offer, FlagChoice flags,
                                    const SpreadOf& spread) const;
  Result<cost::Evaluation> evaluate_anew(const cost::Offer& offer, FlagChoice flags,
                                         strategies::Spread spread) const;

  struct Kept {
    std::mutex mutex;
    std::deque<ServerOnOffer> found;
    Once<std::string, Result<ServeFile>> jobs;  ///< by device
    Once<std::string, Result<cost::Evaluation>> evaluations;
  };

  std::filesystem::path path_;
  std::string text_;
  double tokens_;
  ServeFile job_;
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace rehearse::cli
