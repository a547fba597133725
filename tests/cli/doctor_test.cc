// doctor: what it reports about a machine whose driver is a mock that fails in each way.
#include <catch2/catch.hpp>

#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;

using Variables = std::map<std::string, std::string>;

/// The check of that name, on a machine with the mock driver and CUPTI.
Json check_of(const std::string& name, Variables variables = {}) {
  variables.try_emplace("LD_LIBRARY_PATH", test::capture_program("mocks").string());
  variables.try_emplace("REHEARSE_CUPTI", test::capture_program("mocks/libcupti.so.13").string());
  const Json json =
      test::document(test::RunningRehearse({"doctor", "--format", "json"}, variables).wait());
  for (const Json& found : json["checks"])
    if (found["name"] == name) return found;
  FAIL("no check " << name);
  return {};
}

std::string detail(const Json& check) { return check["detail"]; }
std::string remedy(const Json& check) { return check["remedy"]; }

bool holds(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

TEST_CASE("doctor reports each check with its result and a remedy") {
  const Json json = test::json_of({"doctor"});
  std::vector<std::string> names;
  for (const Json& check : json["checks"]) {
    names.push_back(check["name"]);
    CHECK(check["ok"].is_boolean());
    CHECK_FALSE(check["detail"].get<std::string>().empty());
    CHECK(check["remedy"].is_string());
  }
  CHECK(names == std::vector<std::string>{"capture", "driver", "NVML", "devices", "MIG", "CUPTI",
                                          "other tools", "NCCL", "permissions", "PyTorch hook",
                                          "disk", "SimGrid", "MPI"});
  CHECK(json["checks"][0]["ok"] == true);  // the capture library is built with the program
}

TEST_CASE("doctor states why the driver does not start, and a remedy") {
  CHECK(check_of("driver")["ok"] == true);
  holds(detail(check_of("driver")), "CUDA 13.0");
  CHECK(check_of("devices")["ok"] == true);  // one that CUDA sees, where there is no NVML

  const std::vector<std::array<std::string, 3>> errors = {
      {"100", "no device", "CUDA_VISIBLE_DEVICES is '7'"},
      {"803", "different versions", "reboot"},
      {"804", "compatibility", "compat"},
      {"802", "fabric manager", "nvidia-fabricmanager"},
      {"34", "stub", "LD_LIBRARY_PATH"},
      {"35", "older", "update the driver"},
      {"46", "busy", "nvidia-smi"},
      {"999", "unknown", "CUDA_VISIBLE_DEVICES"},
      {"777", "no reason given", "CUDA_VISIBLE_DEVICES"}};
  for (const auto& [code, says, way] : errors) {
    const Json driver =
        check_of("driver", {{"MOCK_CUDA_INIT", code}, {"CUDA_VISIBLE_DEVICES", "7"}});
    CHECK(driver["ok"] == false);
    holds(detail(driver), says);
    holds(detail(driver), "error " + code);
    holds(remedy(driver), way);
  }
  CHECK(check_of("driver", {{"MOCK_CUDA_VERSION", "0"}})["ok"] == false);
}

TEST_CASE("doctor finds CUPTI as recording does, and compares it with the driver") {
  const Json well = check_of("CUPTI");
  CHECK(well["ok"] == true);
  holds(detail(well), "mocks/libcupti.so.13, of CUDA 13.0");
  const Json newer = check_of("CUPTI", {{"MOCK_CUDA_VERSION", "12040"}});
  CHECK(newer["ok"] == false);
  holds(detail(newer), "newer than the driver (CUDA 12.4)");
  holds(remedy(newer), "REHEARSE_CUPTI");
  const Json older =
      check_of("CUPTI", {{"MOCK_CUDA_VERSION", "12040"}, {"MOCK_CUPTI_VERSION", "19"}});
  CHECK(older["ok"] == true);
  holds(detail(older), "of CUDA 12.0");
  const Json wrong = check_of("CUPTI", {{"REHEARSE_CUPTI", "/no/such/libcupti.so"}});
  CHECK(wrong["ok"] == false);
  holds(detail(wrong), "/no/such/libcupti.so");
}

TEST_CASE("doctor reports other attached tools") {
  CHECK(check_of("other tools")["ok"] == true);
  const Json attached = check_of("other tools", {{"NCCL_PROFILER_PLUGIN", "inspector"}});
  CHECK(attached["ok"] == false);
  holds(detail(attached), "inspector");
  holds(remedy(attached), "unset NCCL_PROFILER_PLUGIN");
  CHECK(check_of("other tools", {{"KINETO_USE_DAEMON", "1"}})["ok"] == false);
}

TEST_CASE("doctor reports whether the requirements of the PyTorch hook are met") {
  const Json absent = check_of("PyTorch hook", {{"PATH", "/nowhere"}});
  CHECK(absent["ok"] == false);
  holds(detail(absent), "python3 is not in PATH");
  const auto fake = test::write_scratch("python3", "#!/bin/sh\nexit 1\n");
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  const Json old =
      check_of("PyTorch hook", {{"PATH", fake.parent_path().string() + ":/usr/bin:/bin"}});
  CHECK(old["ok"] == false);
  holds(detail(old), "older than 3.8");
}

}  // namespace
}  // namespace rehearse
