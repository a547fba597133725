#include "cli/recommending/wish.h"

#include "cli/config/job_file.h"

namespace rehearse::cli {

Result<std::vector<cost::Offer>> offers_of(cost::Wish& wish, const Rent& rent,
                                           const std::filesystem::path& file) {
  const bool providers_by_option = !wish.providers.empty();
  const bool regions_by_option = !wish.regions.empty();
  if (!providers_by_option) wish.providers = rent.providers;
  if (!regions_by_option) wish.regions = rent.regions;
  if (wish.markets.empty()) wish.markets = rent.markets;
  if (wish.markets.empty()) wish.markets = {cost::Market::kOnDemand};
  Result<std::vector<cost::Offer>> offers = cost::offers_of(wish);
  if (offers) return offers;
  Diagnostic wrong = offers.error().diagnostics.front();
  if (wrong.key.empty()) return offers;
  if (!(wrong.key == "region" ? regions_by_option : providers_by_option))
    return wrong_in(file, offers.error());
  wrong.key = "--" + wrong.key;
  return fail(std::move(wrong));
}

}  // namespace rehearse::cli
