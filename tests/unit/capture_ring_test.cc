// The ring against the simplest thing that does the same: a list whose oldest blocks go.
#include <deque>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "profiler/capture/ring.h"

namespace rehearse::capture {
namespace {

struct OpenRing : Ring {
  explicit OpenRing(std::uint64_t bytes) { REQUIRE(open(bytes)); }
  ~OpenRing() { close(); }
};

RingBlock block_of(std::uint64_t step, std::uint32_t bytes) {
  RingBlock block = {};
  block.step = step;
  block.bytes = bytes;
  return block;
}

struct Seen {
  std::uint64_t step;
  std::vector<unsigned char> bytes;
};

std::vector<Seen> contents(Ring& ring) {
  std::vector<Seen> seen;
  ring.each([&](RingBlock& block, const unsigned char* bytes) {
    seen.push_back({block.step, {bytes, bytes + block.bytes}});
    return true;
  });
  return seen;
}

TEST_CASE("a ring holds the newest blocks, whole, in their order") {
  const auto seed = GENERATE(range(1u, 40u));
  std::mt19937_64 random(seed);
  const std::uint64_t capacity = 200 + random() % 3000;
  const std::uint32_t longest = 1 + static_cast<std::uint32_t>(random() % (capacity / 3));
  OpenRing ring(capacity);
  std::vector<std::vector<unsigned char>> added;
  for (std::uint64_t step = 0; step < 300; ++step) {
    std::vector<unsigned char> bytes(random() % longest + 1);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    REQUIRE(ring.add(block_of(step, static_cast<std::uint32_t>(bytes.size())), bytes.data()));
    added.push_back(bytes);
    const std::vector<Seen> seen = contents(ring);
    INFO("seed " << seed << ", capacity " << capacity << ", block " << step);
    REQUIRE_FALSE(seen.empty());
    REQUIRE(seen.size() <= added.size());
    std::uint64_t room = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const std::size_t at = added.size() - seen.size() + i;
      REQUIRE(seen[i].step == at);
      REQUIRE(seen[i].bytes == added[at]);
      room += Ring::room_of(static_cast<std::uint32_t>(seen[i].bytes.size()));
    }
    CHECK(room <= ring.capacity());
    // What was dropped was in the way: with it, and the idle end, the ring would be over-full.
    if (seen.size() < added.size()) CHECK(room + 2 * Ring::room_of(longest) >= ring.capacity());
  }
}

TEST_CASE("a block longer than the ring is refused, and what is there stays") {
  OpenRing ring(256);
  const std::vector<unsigned char> bytes(1000, 7);
  CHECK(ring.add(block_of(1, 100), bytes.data()));
  CHECK_FALSE(ring.add(block_of(2, 300), bytes.data()));
  CHECK(ring.add(block_of(3, 256 - sizeof(RingBlock)), bytes.data()));
  const std::vector<Seen> seen = contents(ring);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].step == 3);
}

TEST_CASE("an empty ring is empty, and a walk can be ended") {
  OpenRing ring(1024);
  CHECK(contents(ring).empty());
  const unsigned char byte = 1;
  for (std::uint64_t step = 0; step < 5; ++step) ring.add(block_of(step, 1), &byte);
  int visits = 0;
  ring.each([&](RingBlock&, const unsigned char*) { return ++visits < 2; });
  CHECK(visits == 2);
}

TEST_CASE("marks in a block remain") {
  OpenRing ring(1024);
  const unsigned char byte = 1;
  ring.add(block_of(1, 1), &byte);
  ring.each([](RingBlock& block, const unsigned char*) { return block.written = true; });
  bool written = false;
  ring.each([&](RingBlock& block, const unsigned char*) { return written = block.written; });
  CHECK(written);
}

}  // namespace
}  // namespace rehearse::capture
