// The settings of an inference server on a cluster: its degrees, and how its steps are formed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/config/serve_file.h"
#include "models/serving/step_price.h"
#include "sim/serving/rules.h"

namespace rehearse::cli {

/// The layout of a pool, and how its steps are formed.
struct PoolSetting {
  serving::ServingPlan plan;
  serving::Rules rules;  ///< without its blocks
};

struct ServerSetting : PoolSetting {
  std::optional<serving::Scaling> scaling = {};  ///< where the job has ServeFile::scaling
  std::optional<PoolSetting> prefill = {};       ///< where the job has ServeFile::prefill
};

/// Devices of all pools.
inline std::uint32_t devices_of(const ServerSetting& setting) {
  return devices_of(setting.plan) + (setting.prefill ? devices_of(setting.prefill->plan) : 0);
}

/// Settings that cannot run the load, by reason.
struct LeftOut {
  std::string reason;
  std::uint64_t count = 0;
  std::string example;  ///< the first of them, with numbers
};

struct ServerSpace {
  std::uint64_t seen = 0;
  std::vector<ServerSetting> settings = {};  ///< that can run every request of the load
  std::vector<LeftOut> left_out = {};
};

/// The flags that a search tries.
enum class FlagChoice : std::uint8_t { kAll, kAsGiven };

/// All settings that use at most the devices of the cluster, in a fixed order. What the file gives
/// is kept. A replica, and replicas that share experts, are within a node, because links between
/// nodes have no price. Degrees divide heads, layers and experts. Of two pools the number of prompt
/// tokens per step is tried for prompts, and that of rows for tokens; pipelines are those of the
/// file. With `scaling`, `data` is the most replicas that the cluster and the rule allow, and a
/// target that is not given is tried: powers of two of requests, shares of the time, or shares of
/// the SLO's time to the first token. Fails if no degrees do.
Result<ServerSpace> server_space(const ServeFile& file, FlagChoice flags = FlagChoice::kAll);

/// The job under this setting. REQUIRES: `job` is `file`, with any setting.
void set(ServeFile& job, const ServerSetting& setting);

/// "tensor 4 × data 2"; "one GPU"; "prompts tensor 2, tokens tensor 4 × data 2".
std::string plan_words(const serving::ServingPlan& plan);
std::string plan_words(const ServerSetting& setting);

}  // namespace rehearse::cli
