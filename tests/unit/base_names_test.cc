#include <map>

#include <catch2/catch.hpp>

#include "sim/base/names.h"
#include "sim/base/paged_map.h"

namespace rehearse {
namespace {

TEST_CASE("equal names have one id, counted in the order of first use") {
  NamePool names;
  CHECK(names.intern("gemm").index() == 0);
  CHECK(names.intern("relu").index() == 1);
  CHECK(names.intern(std::string("ge") + "mm").index() == 0);
  CHECK(names.intern("").index() == 2);
  CHECK(names.size() == 3);
  CHECK(names[NameId(1)] == "relu");
  CHECK(names[NameId(2)].empty());
}

TEST_CASE("views of names stay valid while the pool grows and as long as a copy lives") {
  std::string_view first, large;
  NamePool kept;
  {
    NamePool names;
    first = names[names.intern("first")];
    large = names[names.intern(std::string(1 << 20, 'x'))];  // larger than a block of memory
    for (int i = 0; i < 20'000; ++i) names.intern("name " + std::to_string(i));
    kept = names;
  }
  CHECK(first == "first");
  CHECK(large == std::string(1 << 20, 'x'));
  CHECK(kept.size() == 20'002);
  CHECK(kept[NameId(20'001)] == "name 19999");
}

TEST_CASE("a copy and its original count separately") {
  NamePool names;
  names.intern("both");
  NamePool copy = names;
  CHECK(copy.intern("in the copy").index() == 1);
  CHECK(names.intern("in the original").index() == 1);
  CHECK(copy[NameId(1)] == "in the copy");
  CHECK(names[NameId(1)] == "in the original");
  CHECK(copy.intern("both").index() == 0);
}

TEST_CASE("a paged map keeps what is put in, wherever it lies") {
  PagedMap<int> map;
  std::map<std::uint64_t, int> truth;
  std::uint64_t id = 1;
  for (int i = 1; i <= 300; ++i) {
    id = i % 3 ? id + 1 : id * 6364136223846793005U + 1;  // runs and leaps over 64 bits
    map[id] += i;
    truth[id] += i;
  }
  for (const auto& [key, value] : truth) CHECK(map[key] == value);
  CHECK(map[UINT64_MAX] == 0);
  std::map<std::uint64_t, int> visited;
  map.for_each([&](std::uint64_t key, int value) {
    if (value != 0) visited[key] = value;
  });
  CHECK(visited == truth);
}

}  // namespace
}  // namespace rehearse
