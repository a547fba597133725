#include "cli/study/feeds.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {

struct FeedKind {
  std::string_view name;
  std::string_view section;  ///< of a study; for a kind of job the key that it has
  bool is_job = false;
  Result<FeedRun> (*run)(const YamlMap&, const FeedContext&);
  struct Functions {
    std::string_view unit, names;  ///< names with spaces between
    bool are_lists = false;
  };
  std::vector<Functions> functions;
  bool is_kept = false;  ///< for other points: it is small, and follows from its own texts

  /// The functions among which one is; null if there is no such function.
  const Functions* functions_with(std::string_view function) const {
    for (const Functions& some : functions)
      for (const std::string_view each : split(some.names, ' '))
        if (each == function) return &some;
    return nullptr;
  }
};

namespace {

const std::vector<FeedKind>& feed_kinds() {
  static const std::vector<FeedKind> kKinds = {
      {"pipeline",
       "pipelines",
       false,
       run_pipeline,
       {{"1/s", "rate allowed_rate tuned_rate tuned_bound"},
        {"s", "epoch_time batch_time"},
        {"s", "arrivals", true},
        {"", "filled"}},
       true},
      {"cache",
       "caches",
       false,
       run_cache,
       {{"", "hit_ratio misses reads accesses peak"}, {"s", "read_time batch_time"}}},
      {"graph",
       "graphs",
       false,
       run_graph,
       {{"", "cut halo expected_halo fullest"}, {"B", "exchanged"}, {"s", "epoch_time"}}},
      {"dataflow",
       "dataflows",
       false,
       run_dataflow,
       {{"s", "run_time"}, {"B", "peak_memory"}, {"", "memory_share kernels"}, {"FLOP", "flops"}}},
      {"accelerator",
       "accelerators",
       false,
       run_accelerator,
       {{"", "cycles area"}, {"s", "run_time"}}},
      {"controller",
       "controllers",
       false,
       run_controller,
       {{"", "controlled_price known_price fixed_price fixed_choice estimate_error"}}},
      {"flow",
       "flows",
       false,
       run_flow,
       {{"s", "makespan"}, {"s", "makespans", true}, {"", "completed tries"}}},
      {"slice", "slices", false, run_slice, {{"s", "slice_time"}, {"", "collocation_gain"}}},
      {"graph of ops", "graph", true, run_ops, {{"s", "makespan"}, {"s", "arrivals", true}}},
      {"server",
       "serve",
       true,
       run_server,
       {{"s",
         "ttft_mean ttft_p50 ttft_p90 ttft_p99 tpot_mean tpot_p50 tpot_p90 tpot_p99 itl_mean "
         "itl_p50 itl_p90 itl_p99 end_to_end_mean end_to_end_p50 end_to_end_p90 end_to_end_p99"},
        {"1/s", "output_rate goodput held_rate"},
        {"", "hit_share gpus"}}}};
  return kKinds;
}

/// A function of a feed.
struct Asked {
  const FeedTemplate* feed;
  std::string_view unit;
  bool is_list;
};

/// Returns nothing if the function does not exist. Several kinds may have a function of one name.
std::optional<Result<Asked>> find(const std::vector<FeedTemplate>& feeds, std::string_view name,
                                  std::string_view feed) {
  const FeedKind* last = nullptr;
  std::vector<std::string_view> known;
  std::string what;
  for (const FeedKind& kind : feed_kinds()) {
    const FeedKind::Functions* functions = kind.functions_with(name);
    if (!functions) continue;
    last = &kind;
    what += fmt::format("{}{}", what.empty() ? "" : " or ", kind.name);
    for (const FeedTemplate& candidate : feeds) {
      if (candidate.kind != &kind) continue;
      if (candidate.name == feed) return Asked{&candidate, functions->unit, functions->are_lists};
      known.push_back(candidate.name);
    }
  }
  if (!last) return std::nullopt;
  if (!known.empty()) return fail(fmt::format("unknown {} '{}'", what, feed), suggest(feed, known));
  const std::string part = fmt::format("{}: {{…}}", last->section);
  return fail(fmt::format("unknown {} '{}'", what, feed),
              last->is_job ? fmt::format("jobs: {{NAME: {{{}}}}}", part)
                           : fmt::format("{}: {{NAME: {{…}}}}", last->section));
}

/// The result, whose first mistake names the feed.
template <class T>
Result<T> in_feed(const FeedTemplate& feed, Result<T> result) {
  if (result) return result;
  const Diagnostic& d = result.error().diagnostics.front();
  Diagnostic in = d;
  in.key = {};
  in.problem = fmt::format("{}: {}{}{}", feed.name, d.key, d.key.empty() ? "" : ": ", d.problem);
  return fail(std::move(in));
}

}  // namespace

std::vector<FeedTemplate> read_feeds(const YamlMap& root) {
  std::vector<FeedTemplate> feeds;
  for (const FeedKind& kind : feed_kinds()) {
    if (kind.is_job) continue;
    const auto named = root.map(kind.section);
    if (!named) continue;
    for (const std::string& name : named->keys()) {
      if (std::ranges::find(feeds, name, &FeedTemplate::name) != feeds.end())
        named->report(name, "is defined in two sections", "a unique name");
      if (const auto map = named->map(name)) feeds.push_back({&kind, name, *map});
    }
    named->no_other_keys();
  }
  return feeds;
}

std::optional<FeedTemplate> job_feed(const std::string& name, const YamlMap& job) {
  for (const FeedKind& kind : feed_kinds())
    if (kind.is_job && job.has(kind.section)) return FeedTemplate{&kind, name, job};
  return std::nullopt;
}

std::optional<Result<Term>> FeedValues::value(std::string_view function, std::string_view feed) {
  const std::optional<Result<Asked>> found = find(feeds_, function, feed);
  if (!found) return std::nullopt;
  const auto [of, unit, is_list] = TRY(*found);
  auto run = runs_.find(of->name);
  if (run == runs_.end()) {
    const auto make = [&, of = of](YamlFill fill) -> Result<std::shared_ptr<SharedFeedRun>> {
      return std::make_shared<SharedFeedRun>(
          TRY(in_feed(*of, of->kind->run(of->sections.filled(std::move(fill)), context_))));
    };
    const std::string part = fmt::format("{}\n{}", context_.study.string(), of->name);
    auto made = TRY(of->kind->is_kept ? known_.of(part, fill_, make) : make(fill_));
    run = runs_.emplace(of->name, std::move(made)).first;
  }
  Term term = TRY(in_feed(*of, (*run->second)(function)));
  if (term.unit.empty()) term.unit = unit;
  return term;
}

std::optional<Result<Term>> feed_unit(const std::vector<FeedTemplate>& feeds,
                                      std::string_view function, std::string_view feed) {
  const std::optional<Result<Asked>> found = find(feeds, function, feed);
  if (!found) return std::nullopt;
  const Asked asked = TRY(*found);
  Term term{exact_term(1).estimate, std::string(asked.unit)};
  if (asked.is_list) term.list = {term.estimate};
  return term;
}

std::vector<std::string_view> feed_functions() {
  std::vector<std::string_view> names;
  for (const FeedKind& kind : feed_kinds())
    for (const FeedKind::Functions& some : kind.functions)
      for (const std::string_view name : split(some.names, ' ')) names.push_back(name);
  return names;
}

}  // namespace rehearse::cli
