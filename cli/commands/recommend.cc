// rehearse recommend: the instances to rent, their number, and the plan.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/commands/recommend_result.h"
#include "cli/config/job_account.h"
#include "cli/output/run_events.h"
#include "cli/recommending/amounts.h"
#include "cli/recommending/evaluate.h"
#include "cli/report/report.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct RecommendOptions {
  std::filesystem::path job, prices, report, perfetto;
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
  std::sort(wish.counts.begin(), wish.counts.end());
  wish.counts.erase(std::unique(wish.counts.begin(), wish.counts.end()), wish.counts.end());
  wish.markets.clear();
  if (options.on_demand) wish.markets.push_back(cost::Market::kOnDemand);
  if (options.spot) wish.markets.push_back(cost::Market::kSpot);
  wish.place.today = today();
  if (!options.prices.empty()) {
    Result<cost::PriceBook> book = cost::PriceBook::over_shipped(options.prices);
    if (!book) return forward(book);
    wish.place.prices = std::make_shared<const cost::PriceBook>(std::move(*book));
  }
  return wish;
}

/// Takes the place, market and storage settings from the job file if the command line does not give
/// them.
void add_from_file(const JobFile& file, cost::Wish& wish) {
  if (wish.providers.empty()) wish.providers = file.rent.providers;
  if (wish.regions.empty()) wish.regions = file.rent.regions;
  if (wish.markets.empty()) wish.markets = file.rent.markets;
  if (wish.markets.empty()) wish.markets = {cost::Market::kOnDemand};
  wish.place.hours = file.place.hours;
  wish.keeping = file.keeping;
}

/// Wrong names are reported at their position: in an option, or in the file.
Result<std::vector<cost::Offer>> offers_of(const RecommendOptions& options, const JobOnOffers& job,
                                           const cost::Wish& wish) {
  Result<std::vector<cost::Offer>> offers = cost::offers_of(wish);
  if (offers) return offers;
  Diagnostic wrong_one = offers.error().diagnostics.front();
  if (wrong_one.key.empty()) return offers;
  const bool by_option =
      !(wrong_one.key == "region" ? options.wish.regions : options.wish.providers).empty();
  if (!by_option) return job.wrong_at(wrong_one);
  wrong_one.key = "--" + wrong_one.key;
  return fail(std::move(wrong_one));
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
  const Result<step::Step> step = found.job.run(first);
  if (!step) return forward(step);
  return write_timeline(
      path, [&](TimelineSink& sink) { show_job(step->job, step->lowered, step->timeline, sink); });
}

Result<Exit> run(const RecommendOptions& options, const Globals& globals) {
  if (Status ok = check_writable({options.perfetto, options.report}); !ok) return forward(ok);
  Result<cost::Wish> wish = wish_of(options);
  if (!wish) return forward(wish);
  // The file is read on any instance, to see its region before offers are made.
  const cost::Offer any{&cluster::instances().front(), 1};
  const Result<JobOnOffers> job = JobOnOffers::load(options.job, options.target, any);
  if (!job) return forward(job);
  add_from_file(job->job(), *wish);
  wish->functions = job->for_functions();
  const Result<std::vector<cost::Offer>> offers = offers_of(options, *job, *wish);
  if (!offers) return forward(offers);
  Result<cost::Recommendation> found = cost::recommend(
      *wish, *offers, job->evaluator(), globals.thread_count(), globals.progress_of("recommend"));
  if (!found) return forward(found);
  const Recommended recommended{*job, *wish, std::move(*found)};
  for (const Warning& warning : warnings_of(recommended)) globals.warn(to_string(warning));
  if (!options.perfetto.empty())
    if (Status ok = draw(options.perfetto, recommended, globals); !ok) return forward(ok);
  const Document document = recommend_document(recommended);
  if (Status ok = write_report(options.report, document,
                               {.inputs = {options.job}, .suites = {"withheld/all"}});
      !ok)
    return forward(ok);
  return answer_with(globals, document);
}

}  // namespace

void add_recommend(CLI::App& app, Action& action) {
  auto options = std::make_shared<RecommendOptions>();
  CLI::App* command = app.add_subcommand(
      "recommend", "Recommend cloud instances for a job, their number, and the plan");
  cost::Wish& wish = options->wish;
  add_value(*command, "JOB", "FILE", options->job, "job file; its plan is searched")->required();
  add_read(*command, "--target", "AMOUNT", options->target, parse_target,
           "amount of training: '300e9 tokens', samples, steps or epochs (default: the file's)");
  add_read(*command, "--budget", "MONEY", wish.budget, parse_some<Usd>,
           "maximum cost, such as '40 kUSD'");
  add_read(*command, "--deadline", "TIME", wish.deadline, parse_some<Seconds>,
           "maximum time, such as '5 days'");
  add_read(*command, "--max-carbon", "AMOUNT", wish.most_carbon, parse_carbon,
           "maximum emissions, such as '2 tCO2e'; needs a region");
  add_number(*command, "--risk", wish.risk, 0.5, 0.99,
             "judge time, cost and carbon by what they stay below with this probability: 0.5 "
             "(default), the central value, to 0.99");
  add_value(*command, "--provider", "NAME,...", wish.providers,
            "only instances of these providers (default: the file's, else any)")
      ->delimiter(',');
  add_value(*command, "--region", "NAME,...", wish.regions,
            "regions of the providers, for price and carbon (default: the file's, else the "
            "cheapest for each instance)")
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
  add_value(*command, "--report", "FILE", options->report, "write the result as one HTML page");
  command->footer(
      "Example: rehearse recommend examples/jobs/mpt_7b_rent.yaml --deadline '30 days'");
  run_by(*command, action, options, run);
}

}  // namespace rehearse::cli
