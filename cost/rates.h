// Money per time and carbon per energy, as types like those of sim/base/units.h.
#pragma once

#include "sim/base/units.h"

namespace rehearse::cost {

class UsdRate : public Quantity<UsdRate> {
 public:
  static constexpr UsdRate usd_per_h(double v) { return UsdRate(v / 3600); }
  constexpr double usd_per_h() const { return si() * 3600; }

 private:
  friend Quantity<UsdRate>;
  constexpr explicit UsdRate(double si) : Quantity(si) {}
};

/// Mass of greenhouse gases, as that of carbon dioxide of equal effect, per energy. Its si() is
/// g/J.
class CarbonIntensity : public Quantity<CarbonIntensity> {
 public:
  static constexpr CarbonIntensity g_per_kwh(double v) { return CarbonIntensity(v / 3.6e6); }
  constexpr double g_per_kwh() const { return si() * 3.6e6; }

 private:
  friend Quantity<CarbonIntensity>;
  constexpr explicit CarbonIntensity(double si) : Quantity(si) {}
};

}  // namespace rehearse::cost

namespace rehearse {

/// Price per hour of an instance × its run time gives a cost.
template <>
struct AmountOf<cost::UsdRate, Seconds> {
  using Amount = Usd;
};

}  // namespace rehearse
