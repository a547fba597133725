#include "models/job/shared_links.h"

#include <algorithm>
#include <set>

#include "sim/base/check.h"

namespace rehearse::job {
namespace {

/// Sums of shares of messages differ by rounding.
constexpr double kRounding = 1e-9;

/// A family on a link, and how much of it its messages take for each unit of their rate.
struct User {
  std::uint32_t family;
  double share;
};

struct Loaded {
  ByteRate rate;
  std::vector<User> users;  ///< by family
};

/// Whether `link` is never fuller than `other`.
bool below(const Loaded& link, const Loaded& other) {
  auto theirs = other.users.begin();
  for (const User& ours : link.users) {
    while (theirs != other.users.end() && theirs->family < ours.family) ++theirs;
    if (theirs == other.users.end() || theirs->family != ours.family ||
        ours.share > theirs->share * (1 + kRounding))
      return false;
  }
  return true;
}

}  // namespace

std::uint32_t SharedLinks::add(Load load, std::optional<std::uint32_t> stream) {
  double most = 0;
  for (const auto& [number, link] : load)
    most = std::max(most, link.messages / link.rate.bytes_per_s());
  REHEARSE_CHECK(most > 0, "a family without messages on links");
  families_.push_back({std::move(load), stream, ByteRate::bytes_per_s(1 / most)});
  return static_cast<std::uint32_t>(families_.size() - 1);
}

SharedLinks::Shared SharedLinks::shared() const {
  Shared result;
  std::map<std::uint32_t, Loaded> by_number;
  for (std::uint32_t f = 0; f < families_.size(); ++f) {
    for (const auto& [number, link] : families_[f].load) {
      Loaded& loaded = by_number.try_emplace(number, Loaded{link.rate, {}}).first->second;
      loaded.users.push_back({f, link.messages / link.rate.bytes_per_s()});
    }
    result.families.push_back({families_[f].alone, {}});
  }
  // Of streams the one of their families that takes most; what has none may take any amount.
  const auto can_be_full = [&](const Loaded& link) {
    std::map<std::uint32_t, double> of_stream;
    for (const User& user : link.users) {
      const auto& stream = families_[user.family].stream;
      if (!stream) return true;
      double& most = of_stream[*stream];
      most = std::max(most, user.share * result.families[user.family].alone.bytes_per_s());
    }
    double sum = 0;
    for (const auto& [stream, share] : of_stream) sum += share;
    return sum > 1 + kRounding;
  };
  std::vector<const Loaded*> kept;
  std::set<std::vector<double>> seen;
  for (const auto& [number, link] : by_number) {
    std::vector<double> key;
    for (const User& user : link.users) {
      key.push_back(user.family);
      key.push_back(user.share);
    }
    if (seen.insert(std::move(key)).second && can_be_full(link)) kept.push_back(&link);
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Loaded* a, const Loaded* b) {
    return a->users.size() > b->users.size();
  });
  std::vector<const Loaded*> fullest;
  for (const Loaded* link : kept) {
    const auto fuller = [&](const Loaded* other) { return below(*link, *other); };
    if (std::any_of(fullest.begin(), fullest.end(), fuller)) continue;
    // Those that take as many families may stand behind one that is below them.
    std::erase_if(fullest, [&](const Loaded* other) { return below(*other, *link); });
    fullest.push_back(link);
  }
  for (const Loaded* link : fullest) {
    const auto index = static_cast<std::uint32_t>(result.links.size());
    result.links.push_back(link->rate);
    for (const User& user : link->users)
      result.families[user.family].taken.push_back(
          {index, user.share * link->rate.bytes_per_s()});
  }
  return result;
}

}  // namespace rehearse::job
