// The parts of a study other than training jobs: input pipelines, caches, graphs, dataflows,
// accelerators, controllers, flows and inference servers (docs/formats/study.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/study/controller_values.h"
#include "cli/study/expression.h"
#include "cli/study/graph_values.h"
#include "cli/study/server_values.h"
#include "models/dataflow/run.h"
#include "models/flow/flow.h"
#include "models/input/limits.h"
#include "models/input/simulate.h"
#include "models/input/tiles.h"
#include "models/store/read_cache.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

enum class FeedKind : std::uint8_t {
  kPipeline,
  kCache,
  kGraph,
  kDataflow,
  kAccelerator,
  kController,
  kFlow,
  kServer
};
inline constexpr std::string_view kFeedNames[] = {"pipeline",    "cache",      "graph", "dataflow",
                                                  "accelerator", "controller", "flow",  "server"};

struct FeedTemplate {
  FeedKind kind;
  std::string name;
  YamlMap sections;  ///< with parameters in them
};

/// Reads the sections `pipelines`, `caches`, `graphs`, `dataflows`, `accelerators`, `controllers`
/// and `flows` of a study. Servers are among its jobs.
std::vector<FeedTemplate> read_feeds(const YamlMap& root);

/// The values of functions over these at one point. Each feed is run at most once.
class FeedValues {
 public:
  /// `folder` is the folder of the study. Controllers price their choices by `point`.
  FeedValues(const std::vector<FeedTemplate>& feeds, std::filesystem::path folder,
             step::Fidelity fidelity, YamlFill fill, PointValues point)
      : feeds_(feeds),
        folder_(std::move(folder)),
        fidelity_(fidelity),
        fill_(std::move(fill)),
        point_(std::move(point)) {}

  /// Returns nothing if the function is unknown. Fails with one line.
  std::optional<Result<Term>> value(std::string_view function, std::string_view feed);

 private:
  struct Piped {
    input::Pipeline pipeline;
    input::Flow flow;
  };
  /// A pipeline with the advised settings.
  struct TunedPipe {
    double bound;  ///< units per second, as the program predicts
    Estimate<double> rate;
    double filled;  ///< share of the batches that are filled
  };
  struct Cached {
    store::CacheRun run;
    store::Traffic traffic;
  };
  struct Controlled {
    ControllerRun run;
    control::Outcome outcome;
  };
  /// The run of a feed, which `make` makes of its mapping the first time.
  template <class Run, class Make>
  Result<const Run*> once(std::map<std::string, Run>& runs, const FeedTemplate& feed,
                          const Make& make) const;
  Result<const Piped*> piped(const FeedTemplate& feed);
  Result<const TunedPipe*> tuned(const FeedTemplate& feed, const input::Pipeline& pipeline);
  Result<const Cached*> cached(const FeedTemplate& feed);
  Result<const GraphRun*> partitioned(const FeedTemplate& feed);
  Result<const dataflow::Run*> dataflow(const FeedTemplate& feed);
  struct Tiled {
    input::Accelerator accelerator;
    double cycles;
  };
  Result<const Tiled*> tiled(const FeedTemplate& feed);
  Result<const Controlled*> controlled(const FeedTemplate& feed);
  Result<const flow::Outcome*> flowed(const FeedTemplate& feed);
  Result<const ServerRun*> served(const FeedTemplate& feed);

  const std::vector<FeedTemplate>& feeds_;
  std::filesystem::path folder_;
  step::Fidelity fidelity_;
  YamlFill fill_;
  PointValues point_;
  std::map<std::string, Piped> piped_;
  std::map<std::string, TunedPipe> tuned_;
  std::map<std::string, Cached> cached_;
  std::map<std::string, GraphRun> graphs_;
  std::map<std::string, dataflow::Run> dataflows_;
  std::map<std::string, Tiled> tiled_;
  std::map<std::string, Controlled> controlled_;
  std::map<std::string, flow::Outcome> flowed_;
  std::map<std::string, ServerRun> served_;
};

/// Like FeedValues::value, but returns 1 in the unit of the value: checks an expression before
/// anything is run.
std::optional<Result<Term>> feed_unit(const std::vector<FeedTemplate>& feeds,
                                      std::string_view function, std::string_view feed);

/// The names of the functions.
std::vector<std::string_view> feed_functions();

}  // namespace rehearse::cli
