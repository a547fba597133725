// Lays out a workload under a plan that a test expects to be valid, or invalid.
#pragma once

#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "strategies/lay_out.h"

namespace rehearse::test {

inline workload::Layout laid_out(const workload::Workload& w, const strategies::Training& training,
                                 const strategies::Plan& plan) {
  Result<workload::Layout> layout = strategies::lay_out(w, training, plan);
  INFO((layout ? "" : to_string(layout.error())));
  REQUIRE(layout);
  return std::move(*layout);
}

inline std::string error_of(const workload::Workload& w, const strategies::Training& training,
                            const strategies::Plan& plan) {
  const Result<workload::Layout> layout = strategies::lay_out(w, training, plan);
  REQUIRE_FALSE(layout);
  return to_string(layout.error());
}

}  // namespace rehearse::test
