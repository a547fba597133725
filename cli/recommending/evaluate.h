// Evaluates a job on instances of the catalog: the best plan of each offer, for cost::recommend.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cli/config/job_file.h"
#include "cli/recommending/search_offers.h"
#include "cost/recommend.h"
#include "models/input/feed.h"
#include "sim/base/once.h"
#include "strategies/step/fidelity.h"

namespace rehearse::cli {

/// Evaluates one job file against each offer. REQUIRES: it outlives its evaluator.
class JobOnOffers {
 public:
  /// Reads the file on one of the offers, to find its mistakes now. `target` replaces the target of
  /// the file. Fails if neither gives one.
  static Result<JobOnOffers> load(const std::filesystem::path& path, std::optional<Target> target,
                                  const cost::Offer& first);

  const JobFile& job() const { return job_; }
  cost::Evaluator evaluator(const SpreadOf& spread) const;
  /// The specification of an evaluated step, by its detail index.
  const step::Spec& spec(std::size_t detail) const { return kept_->found[detail].spec; }
  double samples_per_step(std::size_t detail) const { return kept_->found[detail].samples; }
  /// The memory of the fullest stage.
  const memory::StageMemory& memory(std::size_t detail) const {
    return kept_->found[detail].memory;
  }
  /// Runs the step of an option again as it was evaluated, with its timeline. REQUIRES: the option
  /// is not of functions.
  Result<step::Step> run(const cost::Option& option) const;
  /// The job on cloud functions; nothing if the model does not suit functions. Functions train in
  /// single precision, and each holds the memory of a rank with one sample.
  std::optional<cost::FunctionJob> for_functions() const;

 private:
  JobOnOffers(std::filesystem::path path, std::string text, JobFile job,
              std::optional<input::Pipeline> input)
      : path_(std::move(path)),
        text_(std::move(text)),
        job_(std::move(job)),
        input_(std::move(input)) {}

  double samples() const;  ///< to the target
  std::optional<Seconds> least_time(const cost::Offer& offer) const;
  /// The model of the steps of plans. The second look runs the best ones as `plan` does.
  enum class Look : std::uint8_t { kFirst, kSecond };
  Result<cost::Evaluation> evaluate(const cost::Offer& offer, Look look,
                                    const SpreadOf& spread) const;

  struct Found {
    step::Spec spec;
    double samples;  ///< per step
    memory::StageMemory memory;
    step::Fidelity fidelity;
    bool all_ranks;
  };
  /// The best plan on an offer, its step with samples always available but without its run, and its
  /// stalls on links.
  struct Planned {
    step::Step step;
    cost::Stalls stalls;
    const step::Spec* spec;  ///< in Kept::found, which grows meanwhile
    std::size_t detail;
    double steps;  ///< to the target
    bool all_ranks;
  };
  using Plan = Result<std::shared_ptr<const Planned>>;
  Plan find_plan(const cost::Offer& offer, Look look, strategies::Spread spread) const;
  /// 0 if there is no bound.
  Seconds least_by_plans(const cost::Offer& offer, const SpreadOf& spread) const;
  Result<JobFile> job_on(const cost::Offer& offer, const cluster::Cluster& cluster) const;
  /// The input pipeline of the job on a host.
  struct Fed {
    input::Feed feed, with_free_storage;
  };
  /// Offers with the same cluster share a plan, offers with the same number of cores share a feed,
  /// and offers with both share an evaluation.
  struct Kept {
    std::mutex mutex;
    std::deque<Found> found;
    Once<std::string, Plan> plans;
    Once<std::string, Result<Seconds>> least;  ///< steps
    Once<std::uint32_t, Fed> feeds;            ///< by cores of a host; 0 if unknown
    Once<std::string, Result<cost::Evaluation>> evaluations;
  };

  std::filesystem::path path_;
  std::string text_;
  JobFile job_;
  std::optional<input::Pipeline> input_;  ///< as in the file, not yet set to an offer's host
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace rehearse::cli
