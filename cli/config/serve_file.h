// The section `serve` of a job: an inference server and its load (docs/formats/job.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/job_costs.h"
#include "cost/step_account.h"
#include "models/serving/cache_space.h"
#include "models/serving/key_transfer.h"
#include "models/serving/step_price.h"
#include "sim/base/yaml.h"
#include "sim/cluster/cluster.h"
#include "sim/serving/request.h"
#include "sim/serving/router.h"
#include "sim/serving/rules.h"
#include "sim/serving/scaling.h"

namespace rehearse::cli {

/// Limits that a served request should keep.
struct ServingSlo {
  std::optional<Seconds> ttft, tpot, end_to_end;
};

/// The degrees of the plan and the flags that a job gives.
struct ServerGiven {
  bool tensor = false, pipeline = false, expert = false, data = false;
  std::vector<std::string_view> flags = {};  ///< as ServerSettings::given
};

/// Replicas that compute prompts alone.
struct PromptPool {
  serving::ServingPlan plan;
  double memory = 0.9;
  std::optional<double> graphs = {};
  serving::Rules rules;  ///< all but the blocks and tiers
  std::vector<serving::CacheTier> tiers = {};
  ServerGiven given;
  serving::Routing routing = serving::Routing::kRoundRobin;
  serving::Network network;  ///< to the replicas that generate tokens
  std::string device =
      {};  ///< empty: that of the cluster; otherwise its GPUs are not in the cluster
  std::size_t devices = 1;
};

/// Replicas that a rule adds and removes; the plan then has the most of them.
struct ReplicaScaling {
  serving::Scaling
      rule;  ///< its start without the time to load weights; a target of 0 is not given
  /// From here a replica loads its weights, at this rate for all of its GPUs together.
  std::string tier = {};
  std::optional<ByteRate> rate = {};
  bool whole_nodes = false;  ///< a search gives each replica all devices of a node
};

struct ServeFile {
  serving::Deployment deployment;
  double memory = 0.9;   ///< the framework's own flag
  serving::Rules rules;  ///< all but the blocks and tiers
  std::vector<serving::CacheTier> tiers = {};
  ServerGiven given;                                         ///< what a search keeps
  serving::Routing routing = serving::Routing::kRoundRobin;  ///< among the `data` replicas
  /// With these, all of the above is of the pool that generates tokens.
  std::optional<PromptPool> prefill = {};
  std::optional<ReplicaScaling> scaling = {};
  std::vector<serving::Request> requests;
  std::int64_t in_flight = 0;  ///< at most, over all replicas; 0: any number
  bool closed = false;         ///< a request is sent when another ends, after its think time
  std::optional<ServingSlo> slo;
  std::size_t devices = 1;                  ///< that the plan uses, in both pools
  std::size_t in_cluster = 1, in_node = 1;  ///< devices
  cost::Place place;
  Rent rent;                       ///< what `recommend` may rent
  std::vector<std::string> notes;  ///< what the file leaves to defaults
};

/// The deployment of the replicas that compute prompts. REQUIRES: `file.prefill`.
serving::Deployment prefill_deployment(const ServeFile& file);
/// These replicas as a server of their own. REQUIRES: `file.prefill`.
ServeFile prefill_server(const ServeFile& file);

inline std::uint32_t devices_of(const serving::ServingPlan& plan) {
  return plan.tensor * plan.pipeline * plan.data;
}

/// Whether the file is the job of a server.
bool is_serve_file(const std::filesystem::path& path);

/// Fails with every mistake, one line each. Paths are relative to `folder`. A cluster file replaces
/// the section.
Result<ServeFile> read_serve(const YamlMap& root, const std::filesystem::path& folder,
                             const std::filesystem::path& cluster_file = {});

/// The same on a cluster that replaces the section, if it is described.
Result<ServeFile> read_serve_on(const YamlMap& root, const std::filesystem::path& folder,
                                const std::optional<cluster::Cluster>& cluster);

/// The same of a file.
Result<ServeFile> load_serve_file(const std::filesystem::path& path,
                                  const std::filesystem::path& cluster_file);

}  // namespace rehearse::cli
