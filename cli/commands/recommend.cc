// rehearse recommend: the instances to rent, their number, and the plan.
#include "cost/recommend.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>

#include "cli/commands/catalog_names.h"
#include "cli/commands/describe_job.h"
#include "cli/commands/options.h"
#include "cli/commands/recommend_serving.h"
#include "cli/commands/shared_work.h"
#include "cli/commands/step_result.h"
#include "cli/config/job_account.h"
#include "cli/config/serve_file.h"
#include "cli/output/document.h"
#include "cli/output/run_events.h"
#include "cli/planning/plan_words.h"
#include "cli/recommending/amounts.h"
#include "cli/recommending/evaluate.h"
#include "cli/recommending/option_words.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/warning.h"

namespace rehearse::cli {
namespace {

using cost::Option;

/// A search that found at least one option.
struct Recommended {
  const JobOnOffers& job;
  const cost::Wish& wish;
  cost::Recommendation found;
};

struct NamedStall {
  const char* name;
  const char* within;  ///< before it in a sentence
  std::optional<Seconds> time;
};

std::vector<NamedStall> stalls_of(const Option& option) {
  const cost::Stalls& s = option.evaluation->stalls;
  return {{"interconnect", "", s.interconnect},
          {"network", ", ", s.network},
          {"input", ", ", s.input},
          {"fetch", ", including ", s.fetch}};
}

double share(const Option& option, Seconds stall) {
  return stall / option.evaluation->job.step.value;
}

Value option_fields(const Recommended& r, std::size_t index, Look place) {
  const Option& o = r.found.options[index];
  const cost::JobAccount& a = o.account;
  const bool front = std::ranges::find(r.found.pareto, index) != r.found.pareto.end();
  Value json = offer_fields(o, r.wish, place);
  if (const auto instance = cluster::find_instance(o.instance))
    json["gpus"] = std::llround((*instance)->gpu_count) * o.count;
  json["plan"] = o.evaluation ? plan_json(r.job.spec(o.evaluation->detail)) : Value();
  json["meets"] = o.meets;
  json.add(account_fields(a));
  if (o.evaluation) {
    const Estimate<Seconds>& step = o.evaluation->job.step;
    const double samples = r.job.samples_per_step(o.evaluation->detail);
    json["step_time"] = step;
    json["all_ranks"] = o.evaluation->all_ranks;
    const auto rate = [&](Seconds time) { return samples / std::max(time.s(), 1e-12); };
    json["throughput"] = Quantity(mapped(step, rate), unit::kSamples);
    json["memory_per_device"] = memory_json(r.job.memory(o.evaluation->detail));
    Value stalls = Value::object();
    const auto add = [&](const char* name, const char* label, const std::optional<Seconds>& time) {
      if (time)
        stalls[name] = {{"value", time->s()},
                        {"unit", "s"},
                        {"share", label, cli::share(share(o, *time)), in::kPercent, kInTables}};
    };
    for (const NamedStall& stall : stalls_of(o)) add(stall.name, stall.name, stall.time);
    add("node_sharing", "node sharing", o.evaluation->stalls.node_sharing);
    json["stalls"] = std::move(stalls);
  }
  if (a.checkpoints)
    json["checkpoints"] = {{"every", a.checkpoints->every},
                           {"write", a.checkpoints->write},
                           {"slowdown", a.checkpoints->slowdown}};
  json["notes"] = a.notes;
  json.show("", "Pareto", front_words(o, front));
  return json;
}

/// "with all ranks a step takes 1.2 s; the closed form gave 1.1 s". REQUIRES: it was evaluated
/// again.
std::string second_look(const Option& option) {
  const std::string step = to_string(option.evaluation->job.step.value, 4),
                    before = to_string(*option.step_before, 4);
  return fmt::format("{} a step takes {}; the closed form {}",
                     option.evaluation->all_ranks ? "with all ranks" : "by messages", step,
                     step == before ? "agrees" : "gave " + before);
}

/// The reasons why the first option ranks above the others; one line each.
std::vector<std::string> why_of(const Recommended& r) {
  const cost::Recommendation& found = r.found;
  const Option& best = found.options.front();
  std::vector<std::string> lines = ranking_lines(found, r.wish);
  if (best.evaluation) {
    std::string stalls;
    for (const NamedStall& stall : stalls_of(best))
      if (stall.time)
        stalls += fmt::format("{}{:.1f} % on the {}", stall.within, share(best, *stall.time) * 100,
                              stall.name);
    lines.push_back("share of the step that waits: " + stalls);
    if (const auto& sharing = best.evaluation->stalls.node_sharing)
      lines.push_back(fmt::format(
          "with each GPU on a separate instance the step would be {:.1f} % {}",
          std::abs(share(best, *sharing)) * 100, *sharing < Seconds::s(0) ? "longer" : "shorter"));
  }
  if (best.step_before) lines.push_back(second_look(best));
  std::set<std::size_t> told;
  for (const Option& option : found.options)
    if (option.step_before && option.evaluation->detail != best.evaluation->detail &&
        told.insert(option.evaluation->detail).second)
      lines.push_back(
          fmt::format("{} was first by closed forms; {}", name_of(option), second_look(option)));
  if (best.account.checkpoints)
    lines.push_back(
        fmt::format("with a checkpoint every {}, writing and interruptions add {:.1f} %",
                    to_string(best.account.checkpoints->every),
                    (best.account.checkpoints->slowdown - 1) * 100));
  lines.push_back(counts_line(found));
  return lines;
}

/// The caveats of the first option: the ends of its intervals, a stale price, unknown quantities.
std::vector<Warning> warnings_of(const Recommended& r) {
  const Option& best = r.found.options.front();
  std::vector<Warning> lines;
  if (!r.wish.deadline && !r.wish.budget)
    lines.push_back(
        {"neither --deadline nor --budget is given, so the cheapest option may take long",
         "give one, such as --deadline '5 days'"});
  const std::vector<Warning> limits = limit_warnings(best, r.wish);
  lines.insert(lines.end(), limits.begin(), limits.end());
  if (!best.evaluation) return lines;
  if (!best.evaluation->stalls.input)
    lines.push_back({"input and fetch stalls are unknown: the job has no `input`",
                     "describe the input pipeline in a file, and set `input` of the job to it"});
  return lines;
}

Document recommend_document(const Recommended& r) {
  const Option& best = r.found.options.front();
  const cost::JobAccount& a = best.account;
  Document d{.command = "recommend", .rows = "options", .rows_title = "Options"};
  d.answer =
      sentence_of(fmt::format("{} on {} ({})", r.job.job().name, name_of(best), place_of(best)),
                  {range_words(a.time) + " to the target", a.money ? range_words(*a.money) : "",
                   a.energy ? range_words(a.energy->value) : "",
                   a.carbon ? range_words(Quantity(a.carbon->value, unit::kCarbon)) : "",
                   best.evaluation ? best.evaluation->plan : ""});
  d["job"] = {{"workload", r.job.job().name}};
  show_options(d, r.found, [&](std::size_t i, Look place) { return option_fields(r, i, place); });
  d.show("why", "Why", why_of(r));
  d.show("", "Notes", a.notes);
  d["offers"] = offers_fields(r.found);
  d.methods = {Method::kOffers, Method::kSearch, Method::kMessages};
  d.add_warnings(warnings_of(r));
  return d;
}

struct RecommendOptions {
  std::filesystem::path job_file, prices, perfetto, journal;
  DescribedJob described;
  std::optional<Target> target;
  cost::Wish wish = {.counts = {1, 2, 4, 8, 16, 32}};
  bool spot = false, on_demand = false;
};

/// A quantity above zero.
template <class Q>
Result<Q> parse_some(const std::string& text) {
  const Result<Q> value = parse_quantity<Q>(text);
  if (value && value->si() <= 0) return fail(fmt::format("'{}' is not above zero", text));
  return value;
}

Result<cost::Wish> wish_of(const RecommendOptions& options) {
  cost::Wish wish = options.wish;
  std::ranges::sort(wish.counts);
  wish.counts.erase(std::unique(wish.counts.begin(), wish.counts.end()), wish.counts.end());
  wish.markets.clear();
  if (options.on_demand) wish.markets.push_back(cost::Market::kOnDemand);
  if (options.spot) wish.markets.push_back(cost::Market::kSpot);
  wish.place.today = today();
  if (!options.prices.empty()) {
    cost::PriceBook book = TRY(cost::PriceBook::over_shipped(options.prices));
    wish.place.prices = std::make_shared<const cost::PriceBook>(std::move(book));
  }
  return wish;
}

/// Draws the first option's step, if the option is of machines.
Status draw(const std::filesystem::path& path, const Recommended& found, const Globals& globals) {
  const cost::Option& first = found.found.options.front();
  if (!first.evaluation) {
    globals.warn(
        "--perfetto: the first option is serverless functions, which have no timeline; none is "
        "written");
    return {};
  }
  const step::Step step = TRY(found.job.run(first));
  return write_timeline(
      path, [&](TimelineSink& sink) { show_job(step.job, step.lowered, step.timeline, sink); });
}

Result<Exit> run(const RecommendOptions& options, const Globals& globals, SharedWork& shared) {
  TRY(check_writable({options.perfetto}));
  cost::Wish wish = TRY(wish_of(options));
  if (is_serve_file(options.job_file)) {
    if (!options.perfetto.empty())
      return fail("--perfetto does not apply to a server", "--report FILE");
    return recommend_serving({options.job_file, options.target}, std::move(wish), globals, shared);
  }
  // The file is read on any instance, to see its region before offers are made.
  const cost::Offer any{&cluster::instances().front(), 1};
  const JobOnOffers job = TRY(JobOnOffers::load(options.job_file, options.target, any));
  wish.place.hours = job.job().place.hours;
  wish.keeping = job.job().keeping;
  wish.functions = job.for_functions();
  const std::vector<cost::Offer> offers = TRY(offers_of(wish, job.job().rent, options.job_file));
  cost::Recommendation found = TRY(search_offers(
      options.job_file, wish, offers,
      [&job](const SpreadOf& spread) { return job.evaluator(spread); }, globals, shared));
  const Recommended recommended{job, wish, std::move(found)};
  for (const Warning& warning : warnings_of(recommended)) globals.warn(to_string(warning));
  if (!options.perfetto.empty()) TRY(draw(options.perfetto, recommended, globals));
  return answer_with(globals, recommend_document(recommended), Exit::kSuccess,
                     {.inputs = {options.job_file}, .suites = {"withheld/all"}});
}

}  // namespace

void add_recommend(CLI::App& app, Action& action) {
  auto options = std::make_shared<RecommendOptions>();
  CLI::App* command = app.add_subcommand(
      "recommend", "Recommend cloud instances for a job or a server, their number, and the plan");
  cost::Wish& wish = options->wish;
  add_value(*command, "JOB", "FILE", options->job_file, "job file; its plan is searched");
  add_described_job(*command, options->described, JobUse::kRent);
  add_read(
      *command, "--target", "AMOUNT", options->target, parse_target,
      "amount of training: '300e9 tokens', samples, steps or epochs (default: the file's); of a "
      "server, output tokens (default: a million)");
  add_read(*command, "--budget", "MONEY", wish.budget, parse_some<Usd>,
           "maximum cost, such as '40 kUSD'");
  add_read(*command, "--deadline", "TIME", wish.deadline, parse_some<Seconds>,
           "maximum time, such as '5 days'");
  add_read(*command, "--max-carbon", "AMOUNT", wish.most_carbon, parse_carbon,
           "maximum emissions, such as '2 tCO2e'; needs a region");
  add_number(*command, "--risk", wish.risk, 0.5, 0.99,
             "rank by the time, cost and carbon that are not exceeded with this probability: 0.5 "
             "(default), the central value, to 0.99");
  offer(add_value(*command, "--provider", "NAME,...", wish.providers,
                  "only instances of these providers (default: the file's, else any)"),
        provider_names)
      ->delimiter(',');
  offer(add_value(*command, "--region", "NAME,...", wish.regions,
                  "regions of the providers, for price and carbon (default: the file's, else the "
                  "cheapest for each instance)"),
        region_names)
      ->delimiter(',');
  command->add_flag("--spot", options->spot, "use spot prices");
  command->add_flag("--on-demand", options->on_demand,
                    "use on-demand prices (default); with --spot, use both");
  add_value(*command, "--counts", "N,...", wish.counts,
            "numbers of instances to try (default: 1 to 32 by doubling)")
      ->delimiter(',')
      ->check(CLI::Range(1U, 16384U).description(""));
  add_value(*command, "--prices", "FILE", options->prices,
            "prices in the catalog's format, which override those of the same instances");
  add_value(*command, "--perfetto", "FILE", options->perfetto,
            "write the timeline of a step of the first option for ui.perfetto.dev");
  add_value(*command, "--journal", "FILE", options->journal, kJournalHelp);
  command->footer(
      "Examples:\n"
      "  rehearse recommend examples/jobs/mpt_7b_rent.yaml --deadline '30 days'\n"
      "  rehearse recommend --model mpt_7b --batch 1024 --target '100e9 tokens'\n"
      "  rehearse recommend examples/jobs/serve_llama3_8b_search.yaml --provider aws --counts 1,2");
  run_on_job(*command, action, JobUse::kRent, options->job_file, options->described,
             [options](const Globals& globals) {
               return run_kept(globals, options->journal,
                               [&](SharedWork& shared) { return run(*options, globals, shared); });
             });
}

}  // namespace rehearse::cli
