#include "cli/planning/setting_fields.h"

#include <fmt/format.h>

#include "sim/cluster/catalog.h"

namespace rehearse::cli {

Result<std::vector<ServerFlag>> flags_of(const ServeFile& job) {
  const serving::Deployment& d = job.deployment;
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(d.device));
  return flags_of(d.framework, usual_settings(d.framework, d.version, gpu),
                  {.rules = job.rules, .memory = job.memory, .graphs = d.graphs});
}

std::string flag_words(const std::vector<ServerFlag>& flags) {
  std::string words;
  for (const ServerFlag& flag : flags)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", flag.name, flag.value);
  return words;
}

namespace {

/// A flag in JSON has the type that a job file expects.
Value typed(const std::string& value) {
  if (value == "true" || value == "false") return value == "true";
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (*end != '\0') return value;
  if (value.find('.') != value.npos) return number;
  return static_cast<std::int64_t>(number);
}

Value plan_fields(const serving::ServingPlan& plan, serving::Routing routing) {
  return {{"tensor", plan.tensor},
          {"pipeline", plan.pipeline},
          {"expert", plan.expert},
          {"data", plan.data},
          {"context", plan.context},
          {"router", serving::kRoutingNames[static_cast<std::size_t>(routing)]}};
}

Value scaling_fields(const ReplicaScaling& scaling) {
  const serving::Scaling& rule = scaling.rule;
  const auto time = [](Seconds t) { return fmt::format("{:g} s", t.s()); };
  Value replicas = Value::array();
  replicas.push_back(rule.least);
  replicas.push_back(rule.most);
  Value fields = {{"replicas", std::move(replicas)},
                  {"signal", serving::kSignalNames[static_cast<std::size_t>(rule.signal)]},
                  {"target", rule.target},
                  {"every", time(rule.every)},
                  {"hold", time(rule.hold)},
                  {"start", time(rule.start)}};
  if (rule.signal == serving::Signal::kTtft) fields["target"] = time(Seconds::s(rule.target));
  if (scaling.rate)
    fields["weights"] = {{"from", scaling.tier},
                         {"rate", fmt::format("{:g} GB/s", scaling.rate->gb_per_s())}};
  return fields;
}

Value flag_fields(const std::vector<ServerFlag>& flags) {
  Value named = Value::object();
  for (const ServerFlag& flag : flags) named[flag.name] = typed(flag.value);
  return named;
}

}  // namespace

Result<Value> setting_fields(const ServeFile& job) {
  const std::vector<ServerFlag> flags = TRY(flags_of(job));
  Value fields = {{"plan", plan_fields(job.deployment.plan, job.routing)},
                  {"flags", flag_fields(flags)},
                  {"devices", job.devices}};
  if (job.scaling) {
    fields["plan"] = {{"tensor", job.deployment.plan.tensor},
                      {"pipeline", job.deployment.plan.pipeline},
                      {"context", job.deployment.plan.context},
                      {"router", serving::kRoutingNames[static_cast<std::size_t>(job.routing)]}};
    fields["scaling_rule"] = scaling_fields(*job.scaling);
  }
  if (!job.prefill) return fields;
  const std::vector<ServerFlag> prefill_flags = TRY(flags_of(prefill_server(job)));
  const serving::Network& network = job.prefill->network;
  fields["prefill"] = {{"plan", plan_fields(job.prefill->plan, job.prefill->routing)},
                       {"flags", flag_fields(prefill_flags)},
                       {"transfer",
                        {{"rate", fmt::format("{:g} GB/s", network.rate.gb_per_s())},
                         {"latency", fmt::format("{:g} us", network.latency.us())},
                         {"by", network.by_layer ? "layer" : "whole"}}}};
  return fields;
}

}  // namespace rehearse::cli
