// Estimate: a predicted quantity, how sure it is, and how it was obtained.
#pragma once

#include <functional>
#include <string_view>
#include <type_traits>

namespace rehearse {

enum class Provenance {
  kRecorded,      ///< from recorded samples of this very thing
  kInterpolated,  ///< between recorded samples
  kExtrapolated,  ///< outside the envelope of the samples
  kDatasheet,     ///< from published figures only
};

inline constexpr std::string_view kProvenanceNames[] = {"recorded", "interpolated", "extrapolated",
                                                        "datasheet"};
constexpr std::string_view to_string(Provenance p) {
  return kProvenanceNames[static_cast<int>(p)];
}

/// `low` to `high` is a 90 % interval. Q is a quantity of units.h.
template <class Q>
struct Estimate {
  Q value;
  Q low;
  Q high;
  Provenance provenance;

  friend constexpr bool operator==(const Estimate&, const Estimate&) = default;
  friend constexpr Estimate operator*(const Estimate& e, double factor) {
    return {e.value * factor, e.low * factor, e.high * factor, e.provenance};
  }
};

/// A quantity that follows from the estimated one alone: `of` at its value and at both ends. The
/// lower of these becomes the new low end. REQUIRES: `of` rises or falls everywhere in the
/// interval.
template <class Q, class Function>
constexpr auto mapped(const Estimate<Q>& e, const Function& of) {
  const auto a = std::invoke(of, e.low), b = std::invoke(of, e.high);
  return Estimate<std::decay_t<decltype(a)>>{std::invoke(of, e.value), b < a ? b : a,
                                             b < a ? a : b, e.provenance};
}

}  // namespace rehearse
