// The offers of the catalog that a wish allows.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cost/recommend.h"
#include "sim/base/text.h"

namespace rehearse::cost {
namespace {

std::vector<std::string_view> providers() {
  std::vector<std::string_view> names;
  for (const cluster::Instance& instance : cluster::instances())
    if (std::ranges::find(names, instance.provider) == names.end())
      names.push_back(instance.provider);
  return names;
}

const PriceBook& book_of(const Wish& wish) {
  return wish.place.prices ? *wish.place.prices : PriceBook::shipped();
}

/// "aws or gcp"
std::string either(const std::vector<std::string>& names) { return join(names, " or "); }

tl::unexpected<Error> wrong(const char* key, std::string problem, std::string expected,
                            std::string nearest = {}) {
  return fail(Diagnostic{.key = key,
                         .problem = std::move(problem),
                         .expected = std::move(expected),
                         .nearest = std::move(nearest)});
}

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Whether only the hourly carbon file knows the name: any provider may have it.
bool is_own_region(const Wish& wish, std::string_view region) {
  return wish.place.hours && wish.place.hours->has(region) &&
         !contains(book_of(wish).regions(""), region) && grid_of("", region) == nullptr;
}

/// Whether prices or carbon know the region of the provider. A provider with one price for all
/// regions has it in every region.
bool has_region(const Wish& wish, std::string_view provider, std::string_view region) {
  const std::vector<std::string> priced = book_of(wish).regions(provider);
  return contains(priced, region) || contains(priced, kAnyRegion) ||
         grid_of(provider, region) != nullptr || is_own_region(wish, region);
}

/// Regions of the providers that have prices; all regions if one of them has a price for all
/// regions.
std::vector<std::string> regions_of(const Wish& wish) {
  if (wish.providers.empty()) return book_of(wish).regions("");
  std::vector<std::string> all;
  for (const std::string& provider : wish.providers) {
    std::vector<std::string> own = book_of(wish).regions(provider);
    if (contains(own, kAnyRegion)) return book_of(wish).regions("");
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

/// Fails if neither prices nor carbon know the region, and if a wish for carbon cannot be judged in
/// it.
Status check_region(const Wish& wish, const std::string& region) {
  const bool hours = wish.place.hours && wish.place.hours->has(region);
  const std::vector<std::string> known = regions_of(wish);
  const auto grid = [&](const std::string& provider) { return grid_of(provider, region); };
  const bool any_grid = wish.providers.empty()
                            ? grid("") != nullptr
                            : std::ranges::any_of(wish.providers, [&](const std::string& provider) {
                                return grid(provider) != nullptr;
                              });
  if (!hours && !contains(known, region) && !any_grid) {
    const std::vector<std::string_view> names(known.begin(), known.end());
    return wrong("region",
                 fmt::format("no region '{}'{}", region,
                             wish.providers.empty() ? "" : " of " + either(wish.providers)),
                 "a region with prices in 'rehearse catalog prices'",
                 nearest(region, names) ? suggest(region, names) : "");
  }
  if (wish.most_carbon && !hours && !any_grid)
    return fail(fmt::format("--max-carbon: the carbon intensity of region {} is unknown", region),
                "a region of 'rehearse catalog carbon', or carbon: FILE in the job");
  return {};
}

Status check_places(const Wish& wish) {
  const std::vector<std::string_view> known = providers();
  for (const std::string& provider : wish.providers)
    if (!contains(known, provider))
      return wrong("provider", fmt::format("no provider '{}'", provider), suggest(provider, known));
  if (wish.most_carbon && wish.regions.empty())
    return fail("--max-carbon without a region", "--region, which determines the grid");
  for (const std::string& region : wish.regions) TRY(check_region(wish, region));
  if (wish.regions.empty()) return {};
  // A requested provider is not left out silently.
  for (const std::string& provider : wish.providers)
    if (std::ranges::none_of(wish.regions, [&](const std::string& region) {
          return has_region(wish, provider, region);
        }))
      return wrong(
          "region", fmt::format("{} has no region {}", provider, either(wish.regions)),
          "add a region of that provider ('rehearse catalog prices'), or remove provider " +
              provider);
  return {};
}

/// The markets in which it has a price there; the first market if there is none.
std::vector<Market> markets_of(const Wish& wish, const std::string& instance,
                               const std::string& region) {
  std::vector<Market> priced;
  for (const Market market : wish.markets)
    if (book_of(wish).quote(instance, region, market)) priced.push_back(market);
  if (priced.empty()) priced.push_back(wish.markets.front());
  return priced;
}

}  // namespace

Aim aim_of(const Wish& wish) {
  return wish.budget && !wish.deadline ? Aim::kFastest : Aim::kCheapest;
}

Result<std::vector<Offer>> offers_of(const Wish& wish) {
  TRY(check_places(wish));
  const std::vector<std::string> anywhere = {""};
  std::vector<Offer> offers;
  for (const cluster::Instance& instance : cluster::instances()) {
    if (!wish.providers.empty() && !contains(wish.providers, instance.provider)) continue;
    if (instance.gpu_count < 1 || instance.gpu_count != std::floor(instance.gpu_count)) continue;
    for (const std::string& region : wish.regions.empty() ? anywhere : wish.regions) {
      if (!region.empty() && !has_region(wish, instance.provider, region)) continue;
      for (const Market market : markets_of(wish, instance.name, region))
        for (const std::uint32_t count : wish.counts)
          offers.push_back({&instance, count, region, market});
    }
  }
  if (offers.empty())
    return fail(fmt::format("no instance{}{}",
                            wish.providers.empty() ? "" : " of " + either(wish.providers),
                            wish.regions.empty() ? "" : " in " + either(wish.regions)),
                "a provider and a region of 'rehearse catalog prices'");
  return offers;
}

}  // namespace rehearse::cost
