#include "cli/study/known_runs.h"

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <string>

#include <catch2/catch.hpp>

namespace rehearse::cli {
namespace {

TEST_CASE("known runs: a run serves the points that fill in alike the texts that it read") {
  std::map<std::string, std::string> parameters;
  const YamlFill fill = [&](const std::string& text) -> Result<std::string> {
    return parameters.at(text);
  };
  KnownRuns<std::string> known;
  int made = 0;
  // Reads the time only if there is one.
  const auto make = [&](const YamlFill& read) -> Result<std::shared_ptr<std::string>> {
    ++made;
    std::string run = TRY(read("$kind"));
    if (run == "timed") run += TRY(read("$time"));
    return std::make_shared<std::string>(run);
  };
  const auto run = [&](const std::string& part, const std::string& kind, const std::string& time) {
    parameters = {{"$kind", kind}, {"$time", time}};
    return *known.of(part, fill, make).value();
  };
  CHECK(run("a", "timed", "1") == "timed1");
  CHECK(run("a", "timed", "2") == "timed2");
  CHECK(run("a", "plain", "1") == "plain");
  CHECK(made == 3);
  CHECK(run("a", "timed", "1") == "timed1");
  CHECK(run("a", "plain", "2") == "plain");
  CHECK(made == 3);
  CHECK(run("b", "plain", "2") == "plain");
  CHECK(made == 4);
  // Of those that were not used for longest, there are not more than 32.
  for (int i = 0; i < 31; ++i) run("c", "timed", std::to_string(i));
  CHECK(made == 35);
  run("b", "plain", "2");
  CHECK(made == 35);
  run("a", "plain", "2");
  CHECK(made == 36);
}

TEST_CASE("known runs: two threads that need the same run make it once") {
  KnownRuns<int> known;
  std::atomic<int> made = 0;
  const auto run = [&](const std::string& value, auto&& during) {
    const YamlFill fill = [&](const std::string&) -> Result<std::string> { return value; };
    return *known
                .of("part", fill,
                    [&](const YamlFill& read) -> Result<std::shared_ptr<int>> {
                      TRY(read("$x"));
                      during();
                      return std::make_shared<int>(++made);
                    })
                .value();
  };
  run("before", [] {});
  std::promise<void> begun, end;
  std::future<int> first = std::async(std::launch::async, [&] {
    return run("same", [&] {
      begun.set_value();
      end.get_future().wait();
    });
  });
  begun.get_future().wait();
  std::future<int> second = std::async(std::launch::async, [&] { return run("same", [] {}); });
  // Without the first, the second would end at once.
  CHECK(second.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  end.set_value();
  CHECK(first.get() == 2);
  CHECK(second.get() == 2);
  CHECK(made == 2);
}

TEST_CASE("known runs: a run that fails is made again") {
  KnownRuns<int> known;
  int made = 0;
  const auto make = [&](const YamlFill&) -> Result<std::shared_ptr<int>> {
    if (++made == 1) return fail("once");
    return std::make_shared<int>(made);
  };
  const YamlFill fill = [](const std::string& text) -> Result<std::string> { return text; };
  CHECK(!known.of("a", fill, make));
  CHECK(*known.of("a", fill, make).value() == 2);
  CHECK(*known.of("a", fill, make).value() == 2);
}

}  // namespace
}  // namespace rehearse::cli
