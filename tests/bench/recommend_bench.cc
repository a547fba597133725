// Searching instances: the whole catalog in six counts, with and without bounds. The cost of a plan
// is made up here, so that only the search itself is timed; plans have a benchmark of their own.
#include <benchmark/benchmark.h>

#include "cost/recommend.h"
#include "sim/base/check.h"

namespace rehearse::cost {
namespace {

void search_offers(benchmark::State& state) {
  const bool bounded = state.range(0) != 0;
  Wish wish;
  wish.counts = {1, 2, 4, 8, 16, 32};
  const std::vector<Offer> offers = offers_of(wish).value();
  const auto least = [](const Offer& offer) {
    return Seconds::s(1e7 / (offer.instance->gpu_count * offer.count));
  };
  std::size_t evaluated = 0;
  const Evaluator evaluator = {.least_time = [&](const Offer& offer) -> std::optional<Seconds> {
                                 return bounded ? least(offer) : Seconds::s(0);
                               },
                               .evaluate = [&](const Offer& offer) -> Result<Evaluation> {
                                 ++evaluated;
                                 const Seconds t = least(offer) * 2;
                                 return Evaluation{
                                     .job = {{t, t, t, Provenance::kExtrapolated}, 1, Bytes::b(0)},
                                     .plan = {},
                                     .devices = {}};
                               }};
  for (auto _ : state) {
    const auto found = recommend(wish, offers, evaluator, 1, {});
    REHEARSE_CHECK(found);
    benchmark::DoNotOptimize(found->options.size());
  }
  state.counters["offers"] = static_cast<double>(offers.size());
  state.counters["evaluated"] =
      static_cast<double>(evaluated) / static_cast<double>(state.iterations());
}
BENCHMARK(search_offers)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::cost
