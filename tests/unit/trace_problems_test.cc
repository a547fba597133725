#include <set>

#include <catch2/catch.hpp>

#include "profiler/trace/problems.h"

namespace rehearse::trace {
namespace {

TEST_CASE("problems are counted by kind, with the place of the first") {
  Problems problems;
  CHECK(problems.is_first(ProblemKind::kClockSkew));
  problems.add(ProblemKind::kClockSkew, "a:1");
  problems.add(ProblemKind::kClockSkew, "a:9", 4);
  problems.add(ProblemKind::kMalformed, "a:3", 0);  // none
  CHECK_FALSE(problems.is_first(ProblemKind::kClockSkew));
  CHECK(problems.is_first(ProblemKind::kMalformed));
  REQUIRE(problems.list().size() == 1);
  CHECK(problems.list().front().count == 5);
  CHECK(problems.list().front().first == "a:1");
}

TEST_CASE("the worst problem comes first") {
  Problems problems;
  CHECK(problems.worst() == Severity::kInfo);
  problems.add(ProblemKind::kUnlaunched, "");
  CHECK(problems.worst() == Severity::kInfo);
  problems.add(ProblemKind::kClockSkew, "");
  CHECK(problems.worst() == Severity::kWarning);
  problems.add(ProblemKind::kDroppedRecords, "");
  CHECK(problems.worst() == Severity::kError);
  std::vector<ProblemKind> kinds;
  for (const Problem& problem : problems.list()) kinds.push_back(problem.kind);
  CHECK(kinds == std::vector{ProblemKind::kDroppedRecords, ProblemKind::kClockSkew,
                             ProblemKind::kUnlaunched});
}

TEST_CASE("problems of two readers add up, and the first place is the first reader's") {
  Problems one, two;
  one.add(ProblemKind::kTruncated, "one");
  two.add(ProblemKind::kTruncated, "two", 2);
  two.add(ProblemKind::kUnjoined, "two");
  one.add(two);
  REQUIRE(one.list().size() == 2);
  CHECK(one.list()[0].count == 3);
  CHECK(one.list()[0].first == "one");
  CHECK(one.list()[1].first == "two");
}

TEST_CASE("every kind of problem has its own name and a meaning") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kProblemKinds; ++i) {
    const ProblemInfo& kind = info(static_cast<ProblemKind>(i));
    CHECK_FALSE(kind.meaning.empty());
    CHECK(names.insert(kind.name).second);
  }
  CHECK(info(ProblemKind::kDanglingDependency).name == "dangling_dependency");  // the last
}

}  // namespace
}  // namespace rehearse::trace
