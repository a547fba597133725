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

/// The numbers of replicas, each of so many devices, that are tried.
std::vector<std::uint32_t> replicas_of(const ServeFile& file, const ServingPlan& plan,
                                       const ServerGiven& given, std::uint32_t devices) {
  const std::uint32_t room = static_cast<std::uint32_t>(file.in_cluster) / devices;
  if (file.scaling) {
    const serving::Scaling& rule = file.scaling->rule;
    if (room < rule.least || (file.scaling->whole_nodes && devices != file.in_node)) return {};
    return {std::min(room, static_cast<std::uint32_t>(rule.most))};
  }
  return given.data ? std::vector{plan.data} : replicas_up_to(room);
}

/// `given`: what is kept of `plan`.
std::vector<ServingPlan> plans_of(const ServeFile& file, const ServingPlan& plan,
                                  const ServerGiven& given) {
  const workload::Transformer& model = file.deployment.model;
  const auto in_node = static_cast<std::uint32_t>(file.in_node);
  const auto in_cluster = static_cast<std::uint32_t>(file.in_cluster);
  std::vector<ServingPlan> plans;
  for (const std::uint32_t tensor : degrees(given.tensor, plan.tensor, in_node, model.heads))
    for (const std::uint32_t pipeline :
         degrees(given.pipeline, plan.pipeline, std::max(1U, in_node / tensor), model.layers))
      for (const std::uint32_t data : replicas_of(file, plan, given, tensor * pipeline)) {
        const std::uint32_t sharing = tensor * data, devices = sharing * pipeline;
        if (devices > in_cluster) continue;
        std::vector<std::uint32_t> experts = {1};
        if (given.expert) {
          experts = {plan.expert};
        } else if (!file.scaling && model.mixture && sharing > 1 && devices <= in_node) {
          // vLLM has one degree: all ranks that share experts.
          for (const std::uint32_t e : degrees(false, 1, sharing, model.mixture->experts))
            if (e == sharing || (e > 1 && sharing % e == 0 &&
                                 file.deployment.framework != serving::Framework::kVllm))
              experts.push_back(e);
        }
        for (const std::uint32_t expert : experts)
          plans.push_back({tensor, pipeline, expert, data, plan.context});
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

/// A pool whose settings are tried.
struct PoolToTry {
  std::string_view name;  ///< of two pools, with a space
  serving::Deployment deployment;
  double memory;
  serving::Rules rules;
  ServerGiven given;
  Extremes extremes;
};

/// All pools of the file, first that for tokens.
std::vector<PoolToTry> pools_of(const ServeFile& file) {
  const Extremes extremes = extremes_of(file.requests);
  std::vector<PoolToTry> pools = {
      {"", file.deployment, file.memory, file.rules, file.given, extremes}};
  if (!file.prefill) return pools;
  // Prompts have as many rows as their tokens allow, and the pool for tokens computes none.
  PoolToTry& tokens = pools.front();
  tokens.name = "tokens ";
  tokens.given.pipeline = true;
  for (const char* flag : {"max_num_batched_tokens", "chunked_prefill", "enable_mixed_chunk"})
    tokens.given.flags.push_back(flag);
  PoolToTry prompts{"prompts ",          prefill_deployment(file), file.prefill->memory,
                    file.prefill->rules, file.prefill->given,      extremes};
  prompts.given.pipeline = true;
  for (const char* flag : {"max_num_seqs", "enable_mixed_chunk", "capacity_scheduler_policy"})
    prompts.given.flags.push_back(flag);
  prompts.extremes.longest = extremes.longest_prompt;
  prompts.extremes.longest.output = prompts.extremes.longest_prompt.output = 1;
  pools.push_back(std::move(prompts));
  return pools;
}

/// What a pool may be set to, without regard to the other one.
class PoolSpace {
 public:
  PoolSpace(const ServeFile& file, FlagChoice flags) : file_(file), flags_(flags) {}

  std::vector<PoolSetting> settings_of(const PoolToTry& pool, ServerSpace& space) {
    std::vector<PoolSetting> settings;
    for (const ServingPlan& plan : plans_of(file_, pool.deployment.plan, pool.given)) {
      serving::Deployment deployment = pool.deployment;
      deployment.plan = plan;
      if (const auto price = serving::StepPrice::of(deployment); !price) {
        if (!wrong_) wrong_ = price.error();
        continue;
      }
      for (const serving::Rules& rules : rules_of(pool, plan)) {
        ++space.seen;
        if (fits(pool, deployment, rules, space)) settings.push_back({plan, rules});
      }
    }
    return settings;
  }
  const std::optional<Error>& wrong() const { return wrong_; }

 private:
  std::vector<serving::Rules> rules_of(const PoolToTry& pool, const ServingPlan& plan) const {
    if (flags_ == FlagChoice::kAsGiven) return {pool.rules};
    const std::int64_t requests = static_cast<std::int64_t>(file_.requests.size());
    const std::int64_t flying =
        file_.in_flight > 0 ? std::min(file_.in_flight, requests) : requests;
    const std::int64_t rows = (flying + plan.data - 1) / plan.data;
    return rules_to_try(pool.deployment.framework,
                        {.rules = pool.rules, .memory = pool.memory, .given = pool.given.flags},
                        {rows, rows * (pool.extremes.longest_prompt.input + 1)});
  }

  bool fits(const PoolToTry& pool, const serving::Deployment& deployment,
            const serving::Rules& rules, ServerSpace& space) const {
    const auto leave_out = [&](std::string_view reason, const Error& why) {
      auto at = std::ranges::find(space.left_out, reason, &LeftOut::reason);
      if (at == space.left_out.end())
        at = space.left_out.insert(at,
                                   {std::string(reason), 0,
                                    fmt::format("{}{}: {}", pool.name, plan_words(deployment.plan),
                                                why.diagnostics.front().problem)});
      ++at->count;
      return false;
    };
    const Result<serving::CacheSpace> cache =
        serving::cache_space(deployment, {.memory = pool.memory,
                                          .block_tokens = rules.block_tokens,
                                          .step_tokens = rules.tokens_per_step,
                                          .rows = rules.most_rows});
    if (!cache) return leave_out("does not fit in memory", cache.error());
    serving::Rules with_blocks = rules;
    with_blocks.blocks = cache->blocks;
    if (file_.prefill && pool.extremes.longest.output > 1) with_blocks.chunked = true;
    for (const serving::Request& most : {pool.extremes.longest, pool.extremes.longest_prompt})
      if (const Status ok = serving::Scheduler::check(with_blocks, most); !ok)
        return leave_out("cannot run the longest request", ok.error());
    return true;
  }

  const ServeFile& file_;
  FlagChoice flags_;
  std::optional<Error> wrong_ = {};
};

/// The rules of a setting's replicas.
std::vector<serving::Scaling> scalings_of(const ServeFile& file, const PoolSetting& setting) {
  serving::Scaling rule = file.scaling->rule;
  rule.most = setting.plan.data;
  if (rule.target > 0) return {rule};
  std::vector<double> targets;
  switch (rule.signal) {
    case serving::Signal::kRequests:
      for (double t = 1; t <= static_cast<double>(setting.rules.most_rows); t *= 2)
        targets.push_back(t);
      break;
    case serving::Signal::kQueue: targets = {0.5, 1, 2, 4, 8, 16}; break;
    case serving::Signal::kBusy: targets = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9}; break;
    case serving::Signal::kTtft:
      for (const double share : {0.125, 0.25, 0.5, 1.0})
        targets.push_back(share * file.slo->ttft->s());
      break;
  }
  std::vector<serving::Scaling> rules;
  for (const double target : targets) {
    rule.target = target;
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace

void set(ServeFile& job, const ServerSetting& setting) {
  job.deployment.plan = setting.plan;
  job.rules = setting.rules;
  job.devices = devices_of(setting);
  if (setting.scaling) job.scaling->rule = *setting.scaling;
  if (!setting.prefill) return;
  job.prefill->plan = setting.prefill->plan;
  job.prefill->rules = setting.prefill->rules;
  job.prefill->devices = devices_of(setting.prefill->plan);
}

std::string plan_words(const ServingPlan& plan) {
  std::string words;
  for (const auto& [name, degree] : {std::pair{"tensor", plan.tensor},
                                     {"pipeline", plan.pipeline},
                                     {"expert", plan.expert},
                                     {"data", plan.data},
                                     {"context", plan.context}})
    if (degree > 1) words += fmt::format("{}{} {}", words.empty() ? "" : " × ", name, degree);
  return words.empty() ? "one GPU" : words;
}

std::string plan_words(const ServerSetting& setting) {
  if (setting.scaling) {
    ServingPlan replica = setting.plan;
    replica.data = 1;
    const serving::Scaling& rule = *setting.scaling;
    return fmt::format("{}, {} to {} replicas, {} {:g}{}", plan_words(replica), rule.least,
                       rule.most, serving::kSignalNames[static_cast<std::size_t>(rule.signal)],
                       rule.target, rule.signal == serving::Signal::kTtft ? " s" : "");
  }
  if (!setting.prefill) return plan_words(setting.plan);
  return fmt::format("prompts {}, tokens {}", plan_words(setting.prefill->plan),
                     plan_words(setting.plan));
}

Result<ServerSpace> server_space(const ServeFile& file, FlagChoice flags) {
  const bool by_ttft = file.scaling && file.scaling->rule.signal == serving::Signal::kTtft;
  if (by_ttft && file.scaling->rule.target == 0 && !(file.slo && file.slo->ttft))
    return fail("`scaling` by the time to the first token has no target",
                "target, or slo: {ttft: …}");
  if (file.prefill && !file.prefill->device.empty())
    return fail("settings are searched on one kind of GPU", "`prefill` without `device`");
  ServerSpace space;
  PoolSpace pool_space(file, flags);
  std::vector<std::vector<PoolSetting>> of_pools;
  for (const PoolToTry& pool : pools_of(file))
    of_pools.push_back(pool_space.settings_of(pool, space));
  for (const PoolSetting& tokens : of_pools.front()) {
    if (file.scaling)
      for (const serving::Scaling& rule : scalings_of(file, tokens))
        space.settings.push_back({tokens, rule});
    else if (!file.prefill)
      space.settings.push_back({tokens});
    else
      for (const PoolSetting& prompts : of_pools.back())
        if (const ServerSetting both{tokens, {}, prompts}; devices_of(both) <= file.in_cluster)
          space.settings.push_back(both);
  }
  // Of two pools, and of scaled replicas, what counts is their combinations.
  if ((file.prefill || file.scaling) && !space.settings.empty()) space.seen = space.settings.size();
  if (space.seen == 0)
    return pool_space.wrong() ? tl::unexpected(*pool_space.wrong())
                              : fail("no plan of the server uses the devices of the cluster",
                                     "degrees whose product is at most that of a node");
  return space;
}

}  // namespace rehearse::cli
