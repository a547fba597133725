// Work on threads: all of it, once, and what it throws comes out.
#include <atomic>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/base/on_threads.h"

namespace rehearse {
namespace {

TEST_CASE("all work is done once, on any number of threads") {
  for (const unsigned threads : {0U, 1U, 3U, 50U}) {
    std::vector<std::atomic<int>> done(20);
    on_threads(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    for (const std::atomic<int>& times : done) CHECK(times == 1);
  }
  on_threads(0, 4, [](std::size_t) { FAIL("there is none"); });
}

TEST_CASE("an exception on any thread reaches the caller") {
  for (const unsigned threads : {1U, 4U}) {
    std::atomic<int> begun = 0;
    CHECK_THROWS_WITH(on_threads(100000, threads,
                                 [&](std::size_t) {
                                   ++begun;
                                   throw std::runtime_error("a fault");
                                 }),
                      "a fault");
    CHECK(begun <= static_cast<int>(threads));
  }
}

}  // namespace
}  // namespace rehearse
