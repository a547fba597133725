#include "cli/study/feeds.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/input/read_pipeline.h"
#include "models/input/tune.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct Function {
  std::string_view name;
  FeedKind kind;
  std::string_view unit;
};
constexpr Function kFunctions[] = {
    {"rate", FeedKind::kPipeline, "1/s"},       {"allowed_rate", FeedKind::kPipeline, "1/s"},
    {"tuned_rate", FeedKind::kPipeline, "1/s"}, {"epoch_time", FeedKind::kPipeline, "s"},
    {"filled", FeedKind::kPipeline, ""},        {"hit_ratio", FeedKind::kCache, ""},
    {"misses", FeedKind::kCache, ""},           {"reads", FeedKind::kCache, ""},
    {"accesses", FeedKind::kCache, ""},         {"peak", FeedKind::kCache, ""}};

/// The feed that a function is of; nothing where there is no such function.
std::optional<Result<const FeedTemplate*>> find(const std::vector<FeedTemplate>& feeds,
                                                std::string_view name, std::string_view feed,
                                                const Function*& function) {
  function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                          [&](const Function& f) { return f.name == name; });
  if (function == std::end(kFunctions)) return std::nullopt;
  std::vector<std::string_view> known;
  for (const FeedTemplate& one : feeds) {
    if (one.kind != function->kind) continue;
    if (one.name == feed) return &one;
    known.push_back(one.name);
  }
  const std::string_view what = function->kind == FeedKind::kPipeline ? "pipeline" : "cache";
  return fail(fmt::format("unknown {} '{}'", what, feed),
              known.empty() ? fmt::format("{}s: {{NAME: {{…}}}}", what) : suggest(feed, known));
}

/// The first mistake of a mapping, which the points of a study do not all have.
tl::unexpected<Error> first_of(const FeedTemplate& feed, const Error& error) {
  Diagnostic d = error.diagnostics.front();
  d.problem = fmt::format("{}: {}{}{}", feed.name, d.key, d.key.empty() ? "" : ": ", d.problem);
  return fail(d.problem, d.expected, d.nearest);
}

}  // namespace

std::vector<FeedTemplate> read_feeds(const YamlMap& root) {
  std::vector<FeedTemplate> feeds;
  constexpr std::pair<std::string_view, FeedKind> kSections[] = {{"pipelines", FeedKind::kPipeline},
                                                                 {"caches", FeedKind::kCache}};
  for (const auto& [section, kind] : kSections) {
    const auto named = root.map(section);
    if (!named) continue;
    for (const std::string& name : named->keys())
      if (const auto map = named->map(name)) feeds.push_back({kind, name, *map});
    named->no_other_keys();
  }
  return feeds;
}

Result<const FeedValues::Piped*> FeedValues::piped(const FeedTemplate& feed) {
  if (const auto found = piped_.find(feed.name); found != piped_.end()) return &found->second;
  const YamlMap map = feed.sections.filled(fill_);
  input::Pipeline pipeline = input::read_pipeline(map);
  map.no_other_keys();
  if (const Status ok = map.status(); !ok) return first_of(feed, ok.error());
  Result<input::Flow> flow = input::simulate(pipeline);
  if (!flow) return first_of(feed, flow.error());
  return &piped_.emplace(feed.name, Piped{std::move(pipeline), std::move(*flow)}).first->second;
}

Result<const FeedValues::Cached*> FeedValues::cached(const FeedTemplate& feed) {
  if (const auto found = cached_.find(feed.name); found != cached_.end()) return &found->second;
  const YamlMap map = feed.sections.filled(fill_);
  store::CacheRun read = store::read_cache(map, folder_);
  if (const Status ok = map.status(); !ok) return first_of(feed, ok.error());
  Result<store::Traffic> traffic = store::run(read.stream, read.cache);
  if (!traffic) return first_of(feed, traffic.error());
  return &cached_.emplace(feed.name, Cached{std::move(read), std::move(*traffic)}).first->second;
}

std::optional<Result<Term>> FeedValues::value(std::string_view name, std::string_view feed) {
  const Function* function = nullptr;
  const auto found = find(feeds_, name, feed, function);
  if (!found) return std::nullopt;
  if (!*found) return forward(*found);
  const FeedTemplate& of = ***found;
  const auto term = [&](Estimate<double> estimate, double scale = 1) {
    return Term{
        {estimate.value * scale, estimate.low * scale, estimate.high * scale, estimate.provenance},
        std::string(function->unit)};
  };
  const auto exact = [&](double value) {
    return term({value, value, value, Provenance::kDatasheet});
  };
  if (of.kind == FeedKind::kPipeline) {
    const Result<const Piped*> piped = this->piped(of);
    if (!piped) return forward(piped);
    const input::Pipeline& pipeline = (*piped)->pipeline;
    const double samples = input::counts_of(pipeline).samples;
    if (name == "rate") return term((*piped)->flow.units_per_s, samples * (*piped)->flow.filled);
    if (name == "filled") return exact((*piped)->flow.filled);
    if (name == "allowed_rate")
      return exact(input::limits_of(pipeline).front().units_per_s * samples);
    if (name == "tuned_rate") {
      const Result<input::Tuned> tuned = input::tune(pipeline);
      if (!tuned) return first_of(of, tuned.error());
      const Result<input::Flow> flow = input::simulate(tuned->pipeline);
      if (!flow) return first_of(of, flow.error());
      return term(flow->units_per_s, samples * flow->filled);
    }
    if (!(*piped)->flow.epoch)
      return fail(fmt::format("the epoch of '{}' has no length", of.name), "samples: 50000");
    return exact((*piped)->flow.epoch->s());
  }
  const Result<const Cached*> cached = this->cached(of);
  if (!cached) return forward(cached);
  const store::Traffic& traffic = (*cached)->traffic;
  const std::size_t first = (*cached)->run.first;
  if (name == "hit_ratio") return exact(traffic.hit_ratio(first));
  if (name == "misses") return exact(static_cast<double>(traffic.misses(first)));
  if (name == "reads") return exact(static_cast<double>(traffic.reads(first)));
  if (name == "accesses") return exact(static_cast<double>(traffic.accesses(first)));
  return exact(traffic.peak);
}

std::optional<Result<Term>> feed_unit(const std::vector<FeedTemplate>& feeds, std::string_view name,
                                      std::string_view feed) {
  const Function* function = nullptr;
  const auto found = find(feeds, name, feed, function);
  if (!found) return std::nullopt;
  if (!*found) return forward(*found);
  return Term{exact_term(1).estimate, std::string(function->unit)};
}

std::vector<std::string_view> feed_functions() {
  std::vector<std::string_view> names;
  for (const Function& function : kFunctions) names.push_back(function.name);
  return names;
}

}  // namespace rehearse::cli
