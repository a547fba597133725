// The parts of a study other than training jobs: input pipelines, caches, graphs, dataflows,
// accelerators, controllers, flows, slices, graphs of ops and inference servers
// (docs/formats/study.md).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/study/feed_runs.h"
#include "cli/study/known_runs.h"

namespace rehearse::cli {

/// A kind of these parts, with its functions.
struct FeedKind;

struct FeedTemplate {
  const FeedKind* kind;
  std::string name;
  YamlMap sections;  ///< with parameters in them
};

/// Reads the sections `pipelines`, `caches`, `graphs`, `dataflows`, `accelerators`, `controllers`,
/// `flows` and `slices` of a study.
std::vector<FeedTemplate> read_feeds(const YamlMap& root);
/// A server or a graph of ops, which are among the jobs of a study; nothing for a job of training.
std::optional<FeedTemplate> job_feed(const std::string& name, const YamlMap& job);

/// A run that several points share. A function may run more, one after the other.
class SharedFeedRun {
 public:
  explicit SharedFeedRun(FeedRun run) : run_(std::move(run)) {}

  Result<Term> operator()(std::string_view function) {
    const std::scoped_lock lock(mutex_);
    return run_(function);
  }

 private:
  std::mutex mutex_;
  FeedRun run_;
};

/// The values of functions over feeds at one point. Each feed is run at most once, and a pipeline
/// not again if `known` has its run from another point.
class FeedValues {
 public:
  FeedValues(const std::vector<FeedTemplate>& feeds, YamlFill fill, FeedContext context,
             KnownRuns<SharedFeedRun>& known)
      : feeds_(feeds), fill_(std::move(fill)), context_(std::move(context)), known_(known) {}

  /// Returns nothing if the function is unknown. Fails with one line.
  std::optional<Result<Term>> value(std::string_view function, std::string_view feed);

 private:
  const std::vector<FeedTemplate>& feeds_;
  YamlFill fill_;
  FeedContext context_;
  KnownRuns<SharedFeedRun>& known_;
  std::map<std::string, std::shared_ptr<SharedFeedRun>> runs_;
};

/// Like FeedValues::value, but returns 1 in the unit of the value: checks an expression before
/// anything is run.
std::optional<Result<Term>> feed_unit(const std::vector<FeedTemplate>& feeds,
                                      std::string_view function, std::string_view feed);

/// The names of the functions.
std::vector<std::string_view> feed_functions();

}  // namespace rehearse::cli
