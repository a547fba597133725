#include "cli/planning/find_settings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "cli/commands/served_load.h"
#include "sim/base/once.h"

namespace rehearse::cli {
namespace {

using serving::Measures, serving::Run, serving::ServingPlan, strategies::Figures;

/// The number of settings of one plan that may have equal results, as no run reaches their limits.
constexpr std::size_t kAlike = 10;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// What the settings of one plan share.
struct Priced {
  serving::StepPrice price;
  double shortest;  ///< step that gives a token to a decode row, in seconds
};

/// A step with more tokens may take a kernel that is faster for its first rows (kernels.h), so one
/// more token than each of these is tried as well.
double shortest_step(const serving::StepPrice& price, std::int64_t context) {
  double least = kInfinite;
  const auto take = [&](std::int64_t prompt_tokens) {
    serving::Step step{.decode_rows = 1, .decode_context = static_cast<double>(context)};
    if (prompt_tokens > 0) step.prefill.push_back({prompt_tokens, 0});
    least = std::min(least, price.price(step).device.s());
  };
  take(0);
  for (const double rung : serving::kRungs) take(static_cast<std::int64_t>(rung));
  return least;
}

/// Sums over the load.
struct Totals {
  double requests = 0, tokens = 0;
  double gaps = 0;       ///< Σ (output - 1)
  double with_gaps = 0;  ///< requests with two tokens
  double span = 0;       ///< of arrivals, in seconds
  std::int64_t shortest_prompt = std::numeric_limits<std::int64_t>::max();
};
Totals totals_of(const std::vector<serving::Request>& requests) {
  Totals t;
  for (const serving::Request& r : requests) {
    t.requests += 1;
    t.tokens += static_cast<double>(r.output);
    t.gaps += static_cast<double>(r.output - 1);
    t.with_gaps += r.output > 1 ? 1 : 0;
    t.shortest_prompt = std::min(t.shortest_prompt, r.input);
  }
  t.span = (serving::last_planned(requests) - requests.front().planned).seconds().s();
  return t;
}

class SettingFinder {
 public:
  SettingFinder(const ServeFile& file, const SettingsRequest& request)
      : file_(file), request_(request), totals_(totals_of(file.requests)) {}

  Result<FoundSettings> run() {
    space_ = TRY(server_space(file_, request_.flags));
    if (space_.settings.empty()) return nothing_fits();
    strategies::Question question{
        .objective = slot(ServerFigure::kPerRequest),
        .ties = {slot(ServerFigure::kTpot), slot(ServerFigure::kTtft)},
        .front = {slot(ServerFigure::kTpot), slot(ServerFigure::kPerToken)},
        .keep = request_.keep * kAlike};
    if (request_.objective == ServerObjective::kTpot)
      question = with(question, ServerFigure::kTpot, ServerFigure::kPerRequest);
    if (request_.objective == ServerObjective::kTtft)
      question = with(question, ServerFigure::kTtft, ServerFigure::kPerRequest);
    if (file_.slo) question.at_most[slot(ServerFigure::kMissed)] = 1 - kHeldShare;
    const auto begin = std::chrono::steady_clock::now();
    const Result<strategies::Found> found = search(question);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!found) return forward(found);
    if (found->best.empty()) return nothing_holds();
    FoundSettings settings{.seen = space_.seen,
                           .evaluated = found->evaluated,
                           .seen_per_s = static_cast<double>(space_.seen) / took.count(),
                           .evaluated_per_s = static_cast<double>(found->evaluated) / took.count(),
                           .left_out = std::move(space_.left_out),
                           .best = {},
                           .front = {}};
    for (const strategies::Judged& judged : found->best)
      if (settings.best.size() < request_.keep &&
          std::ranges::none_of(settings.best,
                               [&](const FoundSetting& s) { return s.figures == judged.figures; }))
        settings.best.push_back({space_.settings[judged.index], judged.figures});
    for (const strategies::Judged& judged : found->front)
      settings.front.push_back({space_.settings[judged.index], judged.figures});
    return settings;
  }

 private:
  static strategies::Question with(strategies::Question question, ServerFigure objective,
                                   ServerFigure tie) {
    question.objective = slot(objective);
    question.ties = {slot(tie)};
    return question;
  }

  Result<strategies::Found> search(const strategies::Question& question) {
    return strategies::search(
        space_.settings.size(), question,
        [this] {
          // A judge changes the plan and the rules of its own copy of the job.
          const auto job = std::make_shared<ServeFile>(file_);
          return strategies::Judge{
              .bound = [this](std::uint64_t i) { return bound(space_.settings[i]); },
              .evaluate =
                  [this, job](std::uint64_t i) {
                    set(*job, space_.settings[i]);
                    return evaluate(*job);
                  }};
        },
        request_.search);
  }

  const Result<Priced>& priced(const ServingPlan& plan) {
    return price_of(prices_, file_.deployment, plan);
  }
  const Result<Priced>& priced_for_prompts(const ServingPlan& plan) {
    return price_of(prompt_prices_, prefill_deployment(file_), plan);
  }

  using Prices = Once<std::array<std::uint32_t, 4>, Result<Priced>>;
  const Result<Priced>& price_of(Prices& prices, const serving::Deployment& of,
                                 const ServingPlan& plan) const {
    return prices.of({plan.tensor, plan.pipeline, plan.expert, plan.data}, [&]() -> Result<Priced> {
      serving::Deployment deployment = of;
      deployment.plan = plan;
      Result<serving::StepPrice> price = serving::StepPrice::of(deployment);
      if (!price) return forward(price);
      const double shortest = shortest_step(*price, totals_.shortest_prompt);
      return Priced{std::move(*price), shortest};
    });
  }

  double counted_devices(std::size_t used) const {
    return static_cast<double>(request_.whole_cluster ? file_.in_cluster : used);
  }

  /// Of device-seconds that are paid for, if rows decode for so many seconds in all, and so many at
  /// a time.
  double least_device_time(const ServerSetting& setting, double decoding, double rows) const {
    if (!setting.scaling)
      return std::max(totals_.span, decoding / rows) * counted_devices(devices_of(setting));
    // Each replica that decodes is paid for, and the least number of them always is.
    const double of_replicas = std::max(totals_.span * static_cast<double>(setting.scaling->least),
                                        decoding / static_cast<double>(setting.rules.most_rows));
    return of_replicas * devices_of(setting) / setting.plan.data;
  }

  std::optional<Figures> bound(const ServerSetting& setting) {
    const Result<Priced>& server = priced(setting.plan);
    if (!server) return std::nullopt;
    double rows = static_cast<double>(setting.rules.most_rows) * setting.plan.data;
    if (file_.in_flight > 0)
      rows = std::min(
          rows, static_cast<double>(std::max<std::int64_t>(file_.in_flight, setting.plan.data)));
    // A step gives a row the tokens that drafts propose at most, and one more. Requests that leave need none.
    const double gap = server->shortest / static_cast<double>(1 + setting.rules.drafts.size());
    const double time =
        least_device_time(setting, file_.rules.drops ? 0 : totals_.gaps * gap, rows);
    Figures least = {};
    least[slot(ServerFigure::kPerRequest)] = time / totals_.requests;
    least[slot(ServerFigure::kPerToken)] = time / totals_.tokens;
    if (totals_.with_gaps > 0) least[slot(ServerFigure::kTpot)] = gap;
    if (file_.slo && file_.slo->tpot && *file_.slo->tpot < Seconds::s(gap))
      least[slot(ServerFigure::kMissed)] = totals_.with_gaps / totals_.requests;
    return least;
  }

  std::optional<Figures> evaluate(const ServeFile& job) {
    const Result<Priced>& server = priced(job.deployment.plan);
    if (!server) return std::nullopt;
    const Result<serving::CacheSpace> space = space_of(job);
    if (!space) return std::nullopt;
    std::optional<PoolPrice> prompts;
    std::optional<serving::CacheSpace> prompt_space;
    if (job.prefill) {
      const Result<Priced>& price = priced_for_prompts(job.prefill->plan);
      Result<serving::CacheSpace> own = prefill_space_of(job);
      if (!price || !own) return std::nullopt;
      prompt_space = std::move(*own);
      prompts.emplace(PoolPrice{price->price, *prompt_space});
    }
    Servers servers = servers_of(job, {server->price, *space}, prompts);
    if (job.scaling) servers.pool.scaling = scaling_of(job, *space);
    const Result<std::vector<Run>> runs = run_load(job, servers, 1);
    if (!runs) return std::nullopt;
    const Measures m = serving::measure(*runs);
    if (m.requests == 0) return std::nullopt;
    const auto within = static_cast<double>(kept(job.slo.value_or(ServingSlo{}), *runs));
    const double time =
        job.scaling ? device_seconds(job, m) : m.duration * counted_devices(job.devices);
    Figures figures = {};
    figures[slot(ServerFigure::kPerRequest)] = within > 0 ? time / within : kInfinite;
    figures[slot(ServerFigure::kTpot)] = m.tpot.mean;
    figures[slot(ServerFigure::kTtft)] = m.ttft.mean;
    figures[slot(ServerFigure::kPerToken)] = time / m.output_tokens;
    figures[slot(ServerFigure::kMissed)] = 1 - within / totals_.requests;
    return figures;
  }

  tl::unexpected<Error> nothing_fits() const {
    std::string why;
    for (const LeftOut& l : space_.left_out)
      why += fmt::format("{}{} {} ({})", why.empty() ? "" : "; ", l.count, l.reason, l.example);
    return fail(
        fmt::format("none of {} settings of the server runs the load: {}", space_.seen, why),
        "more or larger devices, or narrower precision.weights");
  }

  /// Every setting runs again for its distance from the SLO.
  tl::unexpected<Error> nothing_holds() {
    strategies::Question question{.objective = slot(ServerFigure::kMissed),
                                  .ties = {slot(ServerFigure::kPerRequest)},
                                  .front = {slot(ServerFigure::kMissed)},
                                  .keep = 1};
    const strategies::Found found = TRY(search(question));
    if (found.best.empty()) return fail("the load takes more than 90 days", "a shorter load");
    const strategies::Judged& nearest = found.best.front();
    const ServerSetting& setting = space_.settings[nearest.index];
    return fail(
        fmt::format("no setting of the server keeps the SLO for {:.0f} % of the requests",
                    100 * kHeldShare),
        fmt::format("the nearest, {} with {} rows and {} tokens per step, keeps it for {:.1f} %",
                    plan_words(setting), setting.rules.most_rows, setting.rules.tokens_per_step,
                    100 * (1 - nearest.figures[slot(ServerFigure::kMissed)])));
  }

  const ServeFile& file_;
  const SettingsRequest& request_;
  Totals totals_;
  ServerSpace space_;
  Prices prices_, prompt_prices_;
};

}  // namespace

Result<FoundSettings> find_settings(const ServeFile& file, const SettingsRequest& request) {
  return SettingFinder(file, request).run();
}

}  // namespace rehearse::cli
