// What a job takes on instances of the catalog: the best plan of each offer, for cost::recommend.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/job_file.h"
#include "cost/recommend.h"

namespace rehearse::cli {

/// A job file that is put on one offer after the other. REQUIRES: it outlives its evaluator.
class JobOnOffers {
 public:
  /// Reads the file, on one of the offers: what is wrong with it shows now. `target` takes the
  /// place of the file's. Fails where neither gives one.
  static Result<JobOnOffers> load(const std::filesystem::path& path, std::optional<Target> target,
                                  const cost::Offer& first);

  const JobFile& job() const { return job_; }
  /// The diagnostic where its key stands in the file.
  tl::unexpected<Error> wrong_at(const Diagnostic& diagnostic) const;
  cost::Evaluator evaluator() const;
  /// Of an evaluation, by its detail.
  const step::Spec& spec(std::size_t detail) const { return kept_->specs[detail]; }
  /// A step of the option, run as it was evaluated: with its timeline. REQUIRES: no functions.
  Result<step::Step> run(const cost::Option& option) const;
  /// Nothing where the model does not suit functions: they train in single precision, and what a
  /// function holds is what a rank of one sample holds.
  std::optional<cost::FunctionJob> for_functions() const;

 private:
  JobOnOffers(std::filesystem::path path, std::string text, JobFile job)
      : path_(std::move(path)), text_(std::move(text)), job_(std::move(job)) {}

  double samples() const;  ///< to the target
  std::optional<Seconds> least_time(const cost::Offer& offer) const;
  Result<cost::Evaluation> evaluate(const cost::Offer& offer) const;

  /// Plans that were found; offers that are the same cluster share one evaluation.
  struct Kept {
    std::mutex mutex;
    std::deque<step::Spec> specs;
    std::map<std::string, Result<cost::Evaluation>> by_cluster;
  };

  std::filesystem::path path_;
  std::string text_;
  JobFile job_;
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace rehearse::cli
