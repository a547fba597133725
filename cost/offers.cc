// What of the catalog a wish allows.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "cost/recommend.h"
#include "sim/base/text.h"

namespace rehearse::cost {
namespace {

std::vector<std::string_view> providers() {
  std::vector<std::string_view> names;
  for (const cluster::Instance& instance : cluster::instances())
    if (std::find(names.begin(), names.end(), instance.provider) == names.end())
      names.push_back(instance.provider);
  return names;
}

const PriceBook& book_of(const Wish& wish) {
  return wish.place.prices ? *wish.place.prices : PriceBook::shipped();
}

/// Fails where neither prices nor carbon know the region, and where a wish for carbon cannot be
/// judged in it.
Status check_region(const Wish& wish) {
  const std::string& region = wish.place.region;
  const bool hours = wish.place.hours && wish.place.hours->has(region);
  std::vector<std::string> priced = book_of(wish).regions(wish.provider);
  // Who has one price for anywhere has it in every region that others name.
  if (std::find(priced.begin(), priced.end(), kAnyRegion) != priced.end())
    priced = book_of(wish).regions("");
  std::vector<std::string_view> known(priced.begin(), priced.end());
  if (!hours && std::find(known.begin(), known.end(), region) == known.end() &&
      grid_of(wish.provider, region) == nullptr)
    return fail(fmt::format("--region: no region '{}'{}", region,
                            wish.provider.empty() ? "" : " of " + wish.provider),
                "a region with prices in 'rehearse catalog prices'",
                nearest(region, known) ? suggest(region, known) : "");
  if (wish.most_carbon && !hours && grid_of(wish.provider, region) == nullptr)
    return fail(fmt::format("--max-carbon: no carbon is known of region {}", region),
                "a region of 'rehearse catalog carbon', or carbon: FILE in the job");
  return {};
}

}  // namespace

Aim aim_of(const Wish& wish) {
  return wish.budget && !wish.deadline ? Aim::kFastest : Aim::kCheapest;
}

Result<std::vector<Offer>> offers_of(const Wish& wish) {
  const std::vector<std::string_view> known = providers();
  if (!wish.provider.empty() && std::find(known.begin(), known.end(), wish.provider) == known.end())
    return fail(fmt::format("--provider: no provider '{}'", wish.provider),
                suggest(wish.provider, known));
  if (wish.most_carbon && wish.place.region.empty())
    return fail("--max-carbon without a region", "--region, whose grid it is about");
  if (!wish.place.region.empty())
    if (Status ok = check_region(wish); !ok) return forward(ok);
  const PriceBook& book = book_of(wish);
  std::vector<Offer> offers;
  for (const cluster::Instance& instance : cluster::instances()) {
    if (!wish.provider.empty() && instance.provider != wish.provider) continue;
    if (instance.gpu_count < 1 || instance.gpu_count != std::floor(instance.gpu_count)) continue;
    // One with prices, none of them there, is not rented out there.
    const bool elsewhere = book.quote(instance.name, "", wish.place.market) &&
                           !book.quote(instance.name, wish.place.region, wish.place.market);
    if (elsewhere) continue;
    for (const std::uint32_t count : wish.counts) offers.push_back({&instance, count});
  }
  if (offers.empty())
    return fail(fmt::format("no instance{}{}", wish.provider.empty() ? "" : " of " + wish.provider,
                            wish.place.region.empty() ? "" : " in " + wish.place.region),
                "a provider and a region of 'rehearse catalog prices'");
  return offers;
}

}  // namespace rehearse::cost
