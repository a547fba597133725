// Estimate: a predicted quantity, how sure it is, and how it was obtained.
#pragma once

#include <string_view>

namespace rehearse {

enum class Provenance {
  kRecorded,      ///< from recorded samples of this very thing
  kInterpolated,  ///< between recorded samples
  kExtrapolated,  ///< outside the envelope of the samples
  kDatasheet,     ///< from published figures only
};

constexpr std::string_view to_string(Provenance p) {
  switch (p) {
    case Provenance::kRecorded:
      return "recorded";
    case Provenance::kInterpolated:
      return "interpolated";
    case Provenance::kExtrapolated:
      return "extrapolated";
    case Provenance::kDatasheet:
      return "datasheet";
  }
  return "?";
}

/// `low` to `high` is a 90 % interval. Q is a quantity of units.h.
template <class Q>
struct Estimate {
  Q value;
  Q low;
  Q high;
  Provenance provenance;
};

}  // namespace rehearse
