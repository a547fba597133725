#include "cli/planning/server_space.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/config/server_flags.h"
#include "models/serving/cache_space.h"
#include "sim/serving/scheduler.h"

namespace rehearse::cli {
namespace {

using serving::ServingPlan;

/// Replicas up to this number are tried one by one, then in quarters of an octave.
constexpr std::uint32_t kEachReplica = 8;

std::vector<std::uint32_t> replicas_up_to(std::uint32_t most) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t n = 1; n < most; n += std::max(1U, n / 4 < kEachReplica / 4 ? 1U : n / 4))
    counts.push_back(n);
  if (most > 0) counts.push_back(most);
  return counts;
}

/// The given degree, or those below the number that divide the whole.
std::vector<std::uint32_t> degrees(bool given, std::uint32_t value, std::uint32_t most,
                                   std::uint32_t whole) {
  if (given) return {value};
  std::vector<std::uint32_t> all;
  for (std::uint32_t d = 1; d <= std::min(most, whole); ++d)
    if (whole % d == 0) all.push_back(d);
  return all;
}

std::vector<ServingPlan> plans_of(const ServeFile& file) {
  const ServingPlan& plan = file.deployment.plan;
  const workload::Transformer& model = file.deployment.model;
  const auto in_node = static_cast<std::uint32_t>(file.in_node);
  const auto in_cluster = static_cast<std::uint32_t>(file.in_cluster);
  std::vector<ServingPlan> plans;
  for (const std::uint32_t tensor : degrees(file.given.tensor, plan.tensor, in_node, model.heads))
    for (const std::uint32_t pipeline :
         degrees(file.given.pipeline, plan.pipeline, std::max(1U, in_node / tensor), model.layers))
      for (const std::uint32_t data : file.given.data
                                          ? std::vector{plan.data}
                                          : replicas_up_to(in_cluster / (tensor * pipeline))) {
        const std::uint32_t sharing = tensor * data, devices = sharing * pipeline;
        if (devices > in_cluster) continue;
        std::vector<std::uint32_t> experts = {1};
        if (file.given.expert) {
          experts = {plan.expert};
        } else if (model.mixture && sharing > 1 && devices <= in_node) {
          // vLLM has one degree: all ranks that share experts.
          for (const std::uint32_t e : degrees(false, 1, sharing, model.mixture->experts))
            if (e == sharing || (e > 1 && sharing % e == 0 &&
                                 file.deployment.framework != serving::Framework::kVllm))
              experts.push_back(e);
        }
        for (const std::uint32_t expert : experts)
          plans.push_back({tensor, pipeline, expert, data});
      }
  return plans;
}

/// The requests that ask most of a server.
struct Extremes {
  serving::Request longest, longest_prompt;
};
Extremes extremes_of(const std::vector<serving::Request>& requests) {
  Extremes e;
  for (const serving::Request& r : requests) {
    if (r.input + r.output > e.longest.input + e.longest.output)
      e.longest = {.input = r.input, .output = r.output};
    if (r.input > e.longest_prompt.input) e.longest_prompt = {.input = r.input, .output = r.output};
  }
  return e;
}

}  // namespace

void set(ServeFile& job, const ServerSetting& setting) {
  job.deployment.plan = setting.plan;
  job.rules = setting.rules;
  job.devices = devices_of(setting.plan);
}

std::string plan_words(const ServingPlan& plan) {
  std::string words;
  for (const auto& [name, degree] : {std::pair{"tensor", plan.tensor},
                                     {"pipeline", plan.pipeline},
                                     {"expert", plan.expert},
                                     {"data", plan.data}})
    if (degree > 1) words += fmt::format("{}{} {}", words.empty() ? "" : " × ", name, degree);
  return words.empty() ? "one GPU" : words;
}

Result<ServerSpace> server_space(const ServeFile& file, FlagChoice flags) {
  ServerSpace space;
  const Extremes extremes = extremes_of(file.requests);
  const auto leave_out = [&](std::string_view reason, const ServingPlan& plan, const Error& why) {
    auto at = std::find_if(space.left_out.begin(), space.left_out.end(),
                           [&](const LeftOut& l) { return l.reason == reason; });
    if (at == space.left_out.end())
      at = space.left_out.insert(
          at, {std::string(reason), 0,
               fmt::format("{}: {}", plan_words(plan), why.diagnostics.front().problem)});
    ++at->count;
  };
  std::optional<Error> wrong;
  for (const ServingPlan& plan : plans_of(file)) {
    serving::Deployment deployment = file.deployment;
    deployment.plan = plan;
    if (const auto price = serving::StepPrice::of(deployment); !price) {
      if (!wrong) wrong = price.error();
      continue;
    }
    const std::int64_t requests = static_cast<std::int64_t>(file.requests.size());
    const std::int64_t flying = file.in_flight > 0 ? std::min(file.in_flight, requests) : requests;
    const std::int64_t rows = (flying + plan.data - 1) / plan.data;
    const std::vector<serving::Rules> rules =
        flags == FlagChoice::kAsGiven
            ? std::vector{file.rules}
            : rules_to_try(deployment.framework,
                           {.rules = file.rules, .memory = file.memory, .given = file.given.flags},
                           {rows, rows * (extremes.longest_prompt.input + 1)});
    for (const serving::Rules& each : rules) {
      ++space.seen;
      const Result<serving::CacheSpace> cache =
          serving::cache_space(deployment, {.memory = file.memory,
                                            .block_tokens = each.block_tokens,
                                            .step_tokens = each.tokens_per_step,
                                            .rows = each.most_rows});
      if (!cache) {
        leave_out("does not fit in memory", plan, cache.error());
        continue;
      }
      serving::Rules with_blocks = each;
      with_blocks.blocks = cache->blocks;
      Status ok = serving::Scheduler::check(with_blocks, extremes.longest);
      if (ok) ok = serving::Scheduler::check(with_blocks, extremes.longest_prompt);
      if (!ok)
        leave_out("cannot run the longest request", plan, ok.error());
      else
        space.settings.push_back({plan, each});
    }
  }
  if (space.seen == 0)
    return wrong ? tl::unexpected(std::move(*wrong))
                 : fail("no plan of the server uses the devices of the cluster",
                        "degrees whose product is at most that of a node");
  return space;
}

}  // namespace rehearse::cli
