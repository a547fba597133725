// Evaluates a job on instances of the catalog: the best plan of each offer, for cost::recommend.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/job_file.h"
#include "cost/recommend.h"
#include "models/input/feed.h"
#include "sim/base/once.h"

namespace rehearse::cli {

/// A job file that is put on one offer after the other. REQUIRES: it outlives its evaluator.
class JobOnOffers {
 public:
  /// Reads the file, on one of the offers: what is wrong with it shows now. `target` takes the
  /// place of the file's. Fails where neither gives one.
  static Result<JobOnOffers> load(const std::filesystem::path& path, std::optional<Target> target,
                                  const cost::Offer& first);

  const JobFile& job() const { return job_; }
  /// The diagnostic with the position of its key in the file.
  tl::unexpected<Error> wrong_at(const Diagnostic& diagnostic) const;
  cost::Evaluator evaluator() const;
  /// The step of an evaluation, by its detail.
  const step::Spec& spec(std::size_t detail) const { return kept_->found[detail].spec; }
  double samples_per_step(std::size_t detail) const { return kept_->found[detail].samples; }
  /// The memory of the fullest stage.
  const memory::StageMemory& memory(std::size_t detail) const {
    return kept_->found[detail].memory;
  }
  /// A step of the option, run as it was evaluated: with its timeline. REQUIRES: no functions.
  Result<step::Step> run(const cost::Option& option) const;
  /// Nothing where the model does not suit functions: they train in single precision, and what a
  /// function holds is what a rank of one sample holds.
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
  Result<cost::Evaluation> evaluate(const cost::Offer& offer) const;

  struct Found {
    step::Spec spec;
    double samples;  ///< of a step
    memory::StageMemory memory;
  };
  /// The best plan on a cluster, its step with samples that are there, and what links stall it.
  struct Planned {
    cluster::Cluster cluster;
    step::Step step;
    cost::Stalls stalls;
    const step::Spec* spec;  ///< of Kept::found, which grows meanwhile
    std::size_t detail;
    double steps;  ///< to the target
  };
  using Plan = Result<std::shared_ptr<const Planned>>;
  Plan find_plan(const cost::Offer& offer) const;
  /// What feeds the job on a host.
  struct Fed {
    input::Feed feed, with_free_storage;
  };
  /// Offers that are the same cluster share a plan; those with as many cores, a feed; with both, an
  /// evaluation.
  struct Kept {
    std::mutex mutex;
    std::deque<Found> found;
    Once<std::string, Plan> plans;
    Once<std::uint32_t, Fed> feeds;  ///< by cores of a host; 0 where they are not known
    Once<std::string, Result<cost::Evaluation>> evaluations;
  };

  std::filesystem::path path_;
  std::string text_;
  JobFile job_;
  std::optional<input::Pipeline> input_;  ///< as the file has it, on no host of an offer
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace rehearse::cli
