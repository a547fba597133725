// Prices are known by the op, never by a hash of it.
#include <array>
#include <cstring>
#include <string>

#include <catch2/catch.hpp>

#include "strategies/step/devices.h"

namespace rehearse::step {
namespace {

using Block = std::uint64_t;

/// Two texts of 16 bytes with one std::hash. libstdc++ hashes texts by MurmurHash64A, which takes a
/// block of eight bytes by state = (state ^ spread(block)) * m. `spread` can be undone, so that a
/// second block makes up for what the first has changed.
std::array<std::string, 2> alike() {
  constexpr Block kM = 0xc6a4a7935bd1e995, kSeed = 0xc70f6907;
  Block inverse = kM;  // Newton's iteration: each step doubles the correct bits
  for (int i = 0; i < 6; ++i) inverse *= 2 - kM * inverse;
  const auto fold = [](Block b) { return b ^ (b >> 47); };  // undoes itself
  const auto spread = [&](Block b) { return fold(b * kM) * kM; };
  const auto undone = [&](Block b) { return fold(b * inverse) * inverse; };
  const Block start = kSeed ^ (16 * kM);
  const Block first[] = {1, 2}, second = 3;
  const auto after = [&](Block b) { return (start ^ spread(b)) * kM; };
  const Block other = undone(spread(second) ^ after(first[0]) ^ after(first[1]));
  const auto text = [](Block a, Block b) {
    std::string bytes(16, ' ');
    std::memcpy(bytes.data(), &a, 8);
    std::memcpy(bytes.data() + 8, &b, 8);
    return bytes;
  };
  return {text(first[0], second), text(first[1], other)};
}

TEST_CASE("two ops with one hash have separate prices") {
  const std::array<std::string, 2> names = alike();
  REQUIRE(names[0] != names[1]);
  if (std::hash<std::string_view>{}(names[0]) != std::hash<std::string_view>{}(names[1])) {
    WARN("skipped: this library hashes texts in another way");
    return;
  }
  const workload::Op a{.name = names[0], .kind = workload::OpKind::kNorm};
  workload::Op b = a;
  b.name = names[1];
  REQUIRE(workload::OpHash{}(a) == workload::OpHash{}(b));
  KnownPrices prices(strategies::Price(
      [&](const workload::Op& op) { return Seconds::s(op.name == a.name ? 1 : 2); }));
  CHECK(prices(a).total() == Seconds::s(1));
  CHECK(prices(b).total() == Seconds::s(2));
  CHECK(prices(a).total() == Seconds::s(1));
}

TEST_CASE("a price is asked once for equal ops, even if their names have different owners") {
  int asked = 0;
  KnownPrices prices(strategies::Price([&](const workload::Op&) {
    ++asked;
    return Seconds::s(1);
  }));
  for (int i = 0; i < 3; ++i) {
    const std::string name = "layer norm of a block";
    prices({.name = name, .kind = workload::OpKind::kNorm, .bytes = Bytes::b(64)});
  }
  CHECK(asked == 1);
}

}  // namespace
}  // namespace rehearse::step
