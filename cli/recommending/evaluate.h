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
  const step::Spec& spec(std::size_t detail) const { return kept_->found[detail].spec; }
  double samples_per_step(std::size_t detail) const { return kept_->found[detail].samples; }
  /// Of the stage that fills its device most.
  const memory::StageMemory& memory(std::size_t detail) const {
    return kept_->found[detail].memory;
  }
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
  /// What feeds it there; nothing where the job does not say.
  Result<std::optional<input::Pipeline>> input_on(const cost::Offer& offer) const;

  /// One value for each key, made once, whoever asks for it first.
  template <class T>
  class Once {
   public:
    template <class Make>
    const T& of(const std::string& key, const Make& make) {
      Slot* slot = nullptr;
      {
        const std::lock_guard lock(mutex_);
        slot = &slots_[key];
      }
      std::call_once(slot->once, [&] { slot->value.emplace(make()); });
      return *slot->value;
    }

   private:
    struct Slot {
      std::once_flag once;
      std::optional<T> value;
    };
    std::mutex mutex_;
    std::map<std::string, Slot> slots_;
  };

  /// Offers that are the same cluster share a plan; those that are fed alike, an evaluation.
  struct Kept {
    std::mutex mutex;
    std::deque<Found> found;
    Once<Plan> plans;
    Once<Result<cost::Evaluation>> evaluations;
  };

  std::filesystem::path path_;
  std::string text_;
  JobFile job_;
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace rehearse::cli
