// rehearse recommend: which instances to rent, how many, under which plan.
#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/commands/name_option.h"
#include "cli/commands/recommend_result.h"
#include "cli/config/job_account.h"
#include "cli/output/job_events.h"
#include "cli/recommending/amounts.h"
#include "cli/recommending/evaluate.h"
#include "cli/report/report.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct RecommendOptions {
  std::filesystem::path job, prices, report, perfetto;
  std::string target, budget, deadline, carbon;
  std::vector<std::string> providers, regions;
  bool spot = false, on_demand = false;
  std::vector<std::uint32_t> counts = {1, 2, 4, 8, 16, 32};
};

/// A quantity above zero.
template <class Q>
Result<Q> parse_some(const std::string& text) {
  const Result<Q> value = parse_quantity<Q>(text);
  if (value && value->si() <= 0) return fail(fmt::format("'{}' is not above zero", text));
  return value;
}

Result<cost::Wish> wish_of(const RecommendOptions& options) {
  cost::Wish wish{
      .providers = options.providers, .regions = options.regions, .counts = options.counts};
  std::sort(wish.counts.begin(), wish.counts.end());
  wish.counts.erase(std::unique(wish.counts.begin(), wish.counts.end()), wish.counts.end());
  if (!options.budget.empty()) wish.budget = *parse_some<Usd>(options.budget);
  if (!options.deadline.empty()) wish.deadline = *parse_some<Seconds>(options.deadline);
  if (!options.carbon.empty()) wish.most_carbon = *parse_carbon(options.carbon);
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

/// What the job file says of where, how and keeping, where the command line does not.
void add_from_file(const JobFile& file, cost::Wish& wish) {
  if (wish.providers.empty()) wish.providers = file.rent.providers;
  if (wish.regions.empty()) wish.regions = file.rent.regions;
  if (wish.markets.empty()) wish.markets = file.rent.markets;
  if (wish.markets.empty()) wish.markets = {cost::Market::kOnDemand};
  wish.place.hours = file.place.hours;
  wish.keeping = file.keeping;
}

/// Wrong names are told where they stand: in an option, or in the file.
Result<std::vector<cost::Offer>> offers_of(const RecommendOptions& options, const JobOnOffers& job,
                                           const cost::Wish& wish) {
  Result<std::vector<cost::Offer>> offers = cost::offers_of(wish);
  if (offers) return offers;
  Diagnostic wrong_one = offers.error().diagnostics.front();
  if (wrong_one.key.empty()) return offers;
  const bool by_option = !(wrong_one.key == "region" ? options.regions : options.providers).empty();
  if (!by_option) return job.wrong_at(wrong_one);
  wrong_one.key = "--" + wrong_one.key;
  return fail(std::move(wrong_one));
}

/// The first option's, where it is of machines.
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
  return draw_job(path, step->job, step->lowered, step->timeline);
}

Result<Exit> run(const RecommendOptions& options, const Globals& globals) {
  if (Status ok = check_writable({options.perfetto, options.report}); !ok) return forward(ok);
  Result<cost::Wish> wish = wish_of(options);
  if (!wish) return forward(wish);
  std::optional<Target> target;
  if (!options.target.empty()) target = *parse_target(options.target);
  // The file is read on any instance, to see its region before offers are made.
  const cost::Offer any{&cluster::instances().front(), 1};
  const Result<JobOnOffers> job = JobOnOffers::load(options.job, target, any);
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
  if (Status ok = write_document(globals, document); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_recommend(CLI::App& app, Action& action) {
  auto options = std::make_shared<RecommendOptions>();
  CLI::App* command = app.add_subcommand(
      "recommend", "Recommend cloud instances for a job, their number, and the plan");
  command->add_option("JOB", options->job, "job file; its plan is searched")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--target", options->target,
          "amount of training: '300e9 tokens', samples, steps or epochs (default: the file's)")
      ->check(reads_as(parse_target))
      ->type_name("AMOUNT");
  command->add_option("--budget", options->budget, "maximum cost, such as '40 kUSD'")
      ->check(reads_as(parse_some<Usd>))
      ->type_name("MONEY");
  command->add_option("--deadline", options->deadline, "maximum time, such as '5 days'")
      ->check(reads_as(parse_some<Seconds>))
      ->type_name("TIME");
  command
      ->add_option("--max-carbon", options->carbon,
                   "maximum emissions, such as '2 tCO2e'; needs a region")
      ->check(reads_as(parse_carbon))
      ->type_name("AMOUNT");
  command
      ->add_option("--provider", options->providers,
                   "only instances of these providers (default: the file's, else any)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command
      ->add_option("--region", options->regions,
                   "regions of the providers, for price and carbon (default: the file's, else the "
                   "cheapest for each instance)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_flag("--spot", options->spot, "use spot prices");
  command->add_flag("--on-demand", options->on_demand,
                    "use on-demand prices (default); with --spot, use both");
  command
      ->add_option("--counts", options->counts,
                   "numbers of instances to try (default: 1 to 32 by doubling)")
      ->delimiter(',')
      ->check(CLI::Range(1U, 16384U).description(""))
      ->type_name("N,...");
  command
      ->add_option("--prices", options->prices,
                   "prices in the catalog's format, which override those of the same instances")
      ->type_name("FILE");
  command
      ->add_option("--perfetto", options->perfetto,
                   "write the timeline of a step of the first option for ui.perfetto.dev")
      ->type_name("FILE");
  command->add_option("--report", options->report, "write the result as one HTML page")
      ->type_name("FILE");
  command->footer(
      "Example: rehearse recommend examples/jobs/mpt_7b_rent.yaml --deadline '30 days'");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
