// The parts of a study other than jobs: input pipelines, caches and graphs (docs/formats/study.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/study/expression.h"
#include "cli/study/graph_values.h"
#include "models/input/limits.h"
#include "models/input/simulate.h"
#include "models/store/read_cache.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

enum class FeedKind : std::uint8_t { kPipeline, kCache, kGraph };
inline constexpr std::string_view kFeedNames[] = {"pipeline", "cache", "graph"};

struct FeedTemplate {
  FeedKind kind;
  std::string name;
  YamlMap sections;  ///< with parameters in them
};

/// Those of the sections `pipelines`, `caches` and `graphs` of a study.
std::vector<FeedTemplate> read_feeds(const YamlMap& root);

/// What functions over pipelines, caches and graphs give at one point, each feed run once at most.
class FeedValues {
 public:
  /// `folder` is that of the study.
  FeedValues(const std::vector<FeedTemplate>& feeds, std::filesystem::path folder,
             step::Fidelity fidelity, YamlFill fill)
      : feeds_(feeds), folder_(std::move(folder)), fidelity_(fidelity), fill_(std::move(fill)) {}

  /// Nothing where no such function is known. Fails with one line.
  std::optional<Result<Term>> value(std::string_view function, std::string_view feed);

 private:
  struct Piped {
    input::Pipeline pipeline;
    input::Flow flow;
  };
  /// With the settings that are advised.
  struct TunedPipe {
    double bound;  ///< units per second that the program says
    Estimate<double> rate;
    double filled;  ///< share of its batches
  };
  struct Cached {
    store::CacheRun run;
    store::Controlled controlled;
  };
  Result<const Piped*> piped(const FeedTemplate& feed);
  Result<const TunedPipe*> tuned(const FeedTemplate& feed, const input::Pipeline& pipeline);
  Result<const Cached*> cached(const FeedTemplate& feed);
  Result<const GraphRun*> partitioned(const FeedTemplate& feed);

  const std::vector<FeedTemplate>& feeds_;
  std::filesystem::path folder_;
  step::Fidelity fidelity_;
  YamlFill fill_;
  std::map<std::string, Piped> piped_;
  std::map<std::string, TunedPipe> tuned_;
  std::map<std::string, Cached> cached_;
  std::map<std::string, GraphRun> graphs_;
};

/// As FeedValues::value, for checking an expression before anything is run: 1 in its unit.
std::optional<Result<Term>> feed_unit(const std::vector<FeedTemplate>& feeds,
                                      std::string_view function, std::string_view feed);

/// The names of the functions.
std::vector<std::string_view> feed_functions();

}  // namespace rehearse::cli
