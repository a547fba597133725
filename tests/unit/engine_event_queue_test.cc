// The queue of events against a sorted list, for few events and many, spread out and all at once.
#include <random>
#include <set>
#include <tuple>

#include <catch2/catch.hpp>

#include "sim/engine/event_queue.h"

namespace rehearse::engine {
namespace {

/// Keeps `events` in the queue while `pops` of them leave, each followed by another up to `most`
/// picoseconds later; one in eight of those at a multiple of `most`, where many meet.
void check_order(std::uint64_t seed, std::uint32_t events, std::uint32_t pops, std::int64_t most) {
  INFO("seed " << seed << ", " << events << " events, up to " << most << " ps ahead");
  std::mt19937_64 random(seed);
  EventQueue queue;
  std::set<std::tuple<std::int64_t, std::uint32_t>> expected;  // time, order of adding
  std::uint32_t added = 0;
  const auto add = [&](std::int64_t now) {
    std::int64_t time = now + static_cast<std::int64_t>(random() % (most + 1));
    if (random() % 8 == 0) time = (now / most + 1) * most;
    queue.push(Picoseconds(time), EventKind::kOpEnds, added);
    expected.emplace(time, added++);
  };
  for (std::uint32_t i = 0; i < events; ++i) add(0);
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; !expected.empty(); ++i) {
    const std::int64_t next = queue.next_time().count();
    const Event event = queue.pop([](const Event&, std::size_t) {});
    const auto [time, index] = *expected.begin();
    wrong += next != time || event.time.count() != time || event.index != index;
    expected.erase(expected.begin());
    if (i < pops) add(time);
    if (i < pops && i % 97 == 0) add(time);  // their number grows
  }
  CHECK(wrong == 0);
  CHECK(queue.empty());
}

TEST_CASE("events leave by time, and simultaneous ones in insertion order") {
  std::uint64_t seed = 0;
  for (const std::uint32_t events : {1U, 7U, 64U, 300U, 5'000U})
    for (const std::int64_t most : {1LL, 10LL, 100'000LL, 1'000'000'000'000LL})
      check_order(++seed, events, 20'000, most);
}

TEST_CASE("events far beyond the others come in their turn") {
  EventQueue queue;
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < 4'000; ++i)
    times.push_back(i % 100 == 0 ? INT64_MAX - i : (i * 7919) % 1000);
  for (std::size_t i = 0; i < times.size(); ++i)
    queue.push(Picoseconds(times[i]), EventKind::kOpEnds, static_cast<std::uint32_t>(i));
  std::int64_t last = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::int64_t time = queue.pop([](const Event&, std::size_t) {}).time.count();
    CHECK(time >= last);
    last = time;
  }
  CHECK(last == INT64_MAX);
  CHECK(queue.empty());
}

}  // namespace
}  // namespace rehearse::engine
